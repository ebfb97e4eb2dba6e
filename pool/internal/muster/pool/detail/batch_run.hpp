// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/block.hpp>
#include <muster/pool/detail/batch_access.hpp>
#include <muster/pool/detail/chunk_policy.hpp>
#include <muster/pool/detail/chunk_task.hpp>
#include <muster/pool/detail/pool_core.hpp>
#include <muster/pool/detail/progress.hpp>
#include <muster/queue/task_record.hpp>

namespace muster::detail {

/// The block that all chunks of one map or stream share: the encoded callable, and the word that stops them.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class map_job {
public:
  /// With room for `state_bytes` bytes of encoded callable and bound arguments, which the caller fills. `fail_fast`:
  /// the first failure ends it; `workers_stop`: and so a worker that sees one stops the others at once.
  map_job(arena& memory, std::size_t state_bytes, function_token code, bool fail_fast, bool workers_stop);

  /// The blocks that go with the state.
  [[nodiscard]] attachment_list& attachments() noexcept { return attachments_; }
  [[nodiscard]] std::span<std::byte> state() const noexcept { return block_.bytes().subspan(job_header::state_offset); }

  void stop() noexcept { header().stop.store(1, std::memory_order_relaxed); }
  void resume() noexcept { header().stop.store(0, std::memory_order_relaxed); }
  [[nodiscard]] bool fails_fast() const noexcept { return fail_fast_; }
  [[nodiscard]] block_ref ref() const noexcept { return block_.ref(); }
  [[nodiscard]] function_token code() const noexcept { return code_; }

private:
  [[nodiscard]] job_header& header() const noexcept { return *reinterpret_cast<job_header*>(block_.data()); }

  block block_;
  attachment_list attachments_;
  function_token code_;
  bool fail_fast_;  // as it was made: workers can write to the header
};

/// Runs the callable of a map over one batch, chunk by chunk.
///
/// It works as follows. Some chunks are in flight, a few per worker. A chunk that ends brings the results of its first
/// elements; if the next one failed, or the worker died at it, that element has its error (or is tried again), and the
/// elements behind it go into a new chunk. So one death costs one element. With `fail_fast` the first failure ends the
/// run: chunks in flight stop before their next element, those that run are asked to stop, and nobody waits for them.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: keeps itself while chunks are in flight.
class batch_run : public std::enable_shared_from_this<batch_run> {
public:
  struct settings {
    unsigned retries = 0;
    task_terms terms;  ///< timeout: of each element; deadline: of the whole
    priority urgency = priority::normal;
    std::string label;
    std::size_t first_element = 0;  ///< number of the batch's first element in the whole input, for errors
    chunk_policy::limits chunking;
    lane_route route{};
    bool needs_place = false;  ///< under max_pending; for want of one it fails, where the policy says so
    std::shared_ptr<progress_meter> progress{};  ///< told of every element; shown while somebody waits
  };

  using piece = batch_piece;
  using failure = batch_failure;

  batch_run(std::shared_ptr<pool_core> core, std::shared_ptr<map_job> job, packed_batch batch, settings how);
  ~batch_run();

  /// Posts the first chunks; throws what the pool was closed with. From now on the pool finishes it even if it is
  /// closed. `when_done` is called once, when every element has a result or an error, or at the first
  /// error of a job that fails fast; by any thread, often the supervisor's, so it must not run user code.
  void start(std::function<void()> when_done = {}) MUSTER_EXCLUDES(mutex_);

  /// Gives the rest up: chunks in flight stop before their next element; it is never done then, unless it was.
  void abandon() MUSTER_EXCLUDES(mutex_);

  /// Gives it up: what has no result yet fails with errc::cancelled. False when it was done already.
  bool cancel() MUSTER_EXCLUDES(mutex_);

  /// Waits until it is done, helping to handle completions, and showing the progress if that was asked for.
  bool wait(deadline until = {}) { return wait_showing(*core_, done_, until, settings_.progress.get()); }
  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire) != 0; }

  // Once it is done.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Its number in the whole input.
  [[nodiscard]] std::size_t first_element() const noexcept { return settings_.first_element; }
  [[nodiscard]] std::span<const std::byte> result_array() const noexcept;
  /// Sorted by first element. With no failures they cover the batch.
  [[nodiscard]] const std::vector<piece>& pieces() const MUSTER_NO_THREAD_SAFETY_ANALYSIS { return pieces_; }
  [[nodiscard]] const std::vector<failure>& failures() const MUSTER_NO_THREAD_SAFETY_ANALYSIS { return failures_; }
  /// How long workers were at it, for chunk sizes to come.
  [[nodiscard]] std::chrono::nanoseconds elapsed() const MUSTER_NO_THREAD_SAFETY_ANALYSIS { return elapsed_; }

private:
  struct range {
    std::size_t first = 0;
    std::size_t count = 0;
    unsigned attempt = 1;  // of its first element
    unsigned deaths = 0;   // of workers, by its first element
  };

  // One chunk in flight.
  struct chunk final : completion_sink {
    chunk(batch_run& owner, range which) : run(owner), elements(which) {}
    void settled(task_record& record) noexcept override { run.chunk_ended(*this, record); }
    /// Whether it waits before it is tried again.
    [[nodiscard]] bool delayed() const noexcept {
      return elements.attempt > 1 && run.settings_.terms.retry_delay.count() > 0;
    }

    batch_run& run;
    range elements;
    task_record* task = nullptr;  // guarded by the run's mutex; until its reply is to be taken
  };

  void begin(bool accepted) MUSTER_REQUIRES(mutex_);
  void chunk_ended(chunk& which, task_record& record) noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] task_place place_of(const task_record& record) const noexcept;
  void erase(const chunk& which) MUSTER_REQUIRES(mutex_);
  void fail_for_memory() noexcept MUSTER_REQUIRES(mutex_);
  void account(const range& which, task_reply& reply, std::size_t element, const task_place& place)
      MUSTER_REQUIRES(mutex_);
  void account_reply(const range& which, task_reply& reply, const task_place& place) MUSTER_REQUIRES(mutex_);
  void account_death(const range& which, task_reply& reply, std::size_t element) MUSTER_REQUIRES(mutex_);
  void account_timeout(const range& which, task_reply& reply, std::size_t element, error_info error)
      MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool may_try_again(unsigned attempt) const MUSTER_REQUIRES(mutex_) {
    return attempt <= settings_.retries && !given_up_;
  }
  void try_again(const range& which, std::size_t finished, unsigned deaths) MUSTER_REQUIRES(mutex_);
  void expire() MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::size_t delayed_chunks() const MUSTER_REQUIRES(mutex_);
  static std::size_t finished_before(const range& which, std::size_t element);
  void account_finished(const range& which, std::size_t finished, task_reply& reply) MUSTER_REQUIRES(mutex_);
  void account_failure(const range& which, std::size_t finished, error_info error) MUSTER_REQUIRES(mutex_);
  void fail(std::size_t first, std::size_t count, error_info error, unsigned attempt) MUSTER_REQUIRES(mutex_);
  void post_more() MUSTER_REQUIRES(mutex_);
  bool next_range(range& next) MUSTER_REQUIRES(mutex_);
  void post(const range& which) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_complete() const MUSTER_REQUIRES(mutex_);

  // What is left to be done, without the lock, when the run has just become done; and who keeps it until then.
  struct ending {
    bool now = false;
    std::function<void()> then;
    std::shared_ptr<batch_run> self;
    dispatcher::reservation reserved;
  };
  ending end_if_complete() MUSTER_REQUIRES(mutex_);
  void fail_all(error_info why) MUSTER_REQUIRES(mutex_);
  void stop_running() MUSTER_REQUIRES(mutex_);
  void free_place() MUSTER_REQUIRES(mutex_);
  void announce(const ending& end) MUSTER_EXCLUDES(mutex_);

  const std::shared_ptr<pool_core> core_;
  const std::shared_ptr<map_job> job_;
  const settings settings_;
  const batch_header header_;  // as it was made: workers can write to the block's
  const std::size_t count_;
  const attachment_list attachments_;
  block batch_;
  std::atomic<std::uint32_t> done_ = 0;  // futex; release after all results are in place

  mutex mutex_;
  chunk_policy policy_ MUSTER_GUARDED_BY(mutex_);
  std::size_t untouched_ MUSTER_GUARDED_BY(mutex_) = 0;  // the first element that was never in a chunk
  std::vector<range> again_ MUSTER_GUARDED_BY(mutex_);   // parts of chunks that ended early
  std::vector<std::unique_ptr<chunk>> in_flight_ MUSTER_GUARDED_BY(mutex_);
  std::size_t settled_ MUSTER_GUARDED_BY(mutex_) = 0;  // elements with a result or an error
  bool given_up_ MUSTER_GUARDED_BY(mutex_) = false;
  bool has_place_ MUSTER_GUARDED_BY(mutex_) = false;
  std::vector<piece> pieces_ MUSTER_GUARDED_BY(mutex_);
  std::vector<failure> failures_ MUSTER_GUARDED_BY(mutex_);
  std::chrono::nanoseconds elapsed_ MUSTER_GUARDED_BY(mutex_) = std::chrono::nanoseconds(0);
  std::function<void()> when_done_ MUSTER_GUARDED_BY(mutex_);
  dispatcher::reservation reserved_ MUSTER_GUARDED_BY(mutex_);  // until it is done or given up
  std::shared_ptr<batch_run> self_ MUSTER_GUARDED_BY(mutex_);   // while chunks are in flight
};

}  // namespace muster::detail
