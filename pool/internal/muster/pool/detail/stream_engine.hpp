// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/pool/detail/batch_access.hpp>
#include <muster/pool/detail/batch_run.hpp>
#include <muster/pool/detail/chunk_policy.hpp>
#include <muster/pool/detail/pool_core.hpp>

namespace muster::detail {

/// What drives imap: takes elements from the input as the consumer asks for results, a bounded number ahead, and hands
/// out finished batches, in order or as they come.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe; the consumer's thread drives everything.
class stream_engine {
public:
  struct settings {
    bool ordered = true;
    unsigned retries = 0;
    task_terms terms;  ///< the deadline is the whole stream's
    priority urgency = priority::normal;
    std::string label;
    std::size_t chunk = 0;
    std::size_t window = 0;
    lane_route route{};
    std::shared_ptr<progress_meter> progress{};  ///< told of every element; shown while somebody waits
  };

  stream_engine(std::shared_ptr<pool_core> core, std::shared_ptr<map_job> job, std::unique_ptr<stream_input> input,
                settings how);
  stream_engine(const stream_engine&) = delete;
  stream_engine& operator=(const stream_engine&) = delete;
  /// Gives up what is under way; does not wait for it.
  ~stream_engine();

  /// The next finished batch, after waiting for it; nullptr at the end. `consumed`: how many elements the caller has
  /// handed out since the last call.
  /// Rethrows, once, what the input threw, after the elements before it. Unblocked by: the end of a batch.
  std::shared_ptr<batch_run> next_batch(std::size_t consumed);
  /// As stream_source::when_ready, with next_batch(0).
  std::optional<std::chrono::nanoseconds> when_next(std::size_t consumed, std::function<void()> then);
  /// As stream_source::pull_one.
  void pull_one() { take(1); }

private:
  // Batches that are done: in the unordered case those to be handed out, in the ordered the one that is waited for.
  struct finished_batches {
    mutex guard;
    std::vector<batch_run*> order MUSTER_GUARDED_BY(guard);       // with room for all that are under way
    std::atomic<std::uint32_t> some = 0;                          // futex: 1 while `order` is not empty
    const batch_run* awaited MUSTER_GUARDED_BY(guard) = nullptr;  // nullptr: whichever
    std::function<void()> then MUSTER_GUARDED_BY(guard);          // to be called for that

    void make_room(std::size_t under_way) MUSTER_EXCLUDES(guard);
    void add(batch_run& run) MUSTER_EXCLUDES(guard);
    batch_run* take() MUSTER_EXCLUDES(guard);
    void tell(const batch_run& run) MUSTER_EXCLUDES(guard);
    void when(const batch_run* which, std::function<void()> what) MUSTER_EXCLUDES(guard);
  };

  [[nodiscard]] bool wants_more() const noexcept { return !exhausted_ && next_size() != 0; }
  [[nodiscard]] bool must_hand_out();
  void take(std::size_t most);
  [[nodiscard]] bool has_result() const noexcept;
  [[nodiscard]] std::size_t workers() const noexcept { return settings_.route.workers(core_->workers()); }
  [[nodiscard]] std::size_t next_size() const noexcept;
  void begin(packed_batch batch, std::size_t count);
  std::shared_ptr<batch_run> wait_for_one();

  const std::shared_ptr<pool_core> core_;
  const std::shared_ptr<map_job> job_;
  const std::unique_ptr<stream_input> input_;
  const settings settings_;
  chunk_policy policy_;
  std::deque<std::shared_ptr<batch_run>> under_way_;
  const std::shared_ptr<finished_batches> finished_ = std::make_shared<finished_batches>();
  std::size_t taken_ = 0;  // elements taken from the input
  std::size_t ahead_ = 0;  // of those, not consumed yet
  bool exhausted_ = false;
  std::exception_ptr input_failure_;
};

}  // namespace muster::detail
