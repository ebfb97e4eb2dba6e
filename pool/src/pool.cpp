// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/pool.hpp>

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>

#include <muster/base/effective_cpus.hpp>
#include <muster/base/mutex.hpp>
#include <muster/base/text.hpp>

#include "worker_loop.hpp"

namespace muster {

namespace {

std::size_t worker_count(const pool_options& options) {
  const std::size_t count = options.workers != 0 ? options.workers : effective_cpus();
  if (count <= most_workers) return count;
  throw error(errc::invalid_argument,
              text("a pool of ", count, " workers was asked for; possible are 1 to ", most_workers,
                   ", or 0 for as many as there are processors (", effective_cpus(), ')'));
}

void check(const pool_options& options) {
  if (options.start_tries > 0) return;
  throw error(errc::invalid_argument, "pool_options::start_tries is 0: a worker must be tried at least once");
}

}  // namespace

namespace {

/// Has the workers leave when the last task has ended. Whoever notices that may do so while the pool is being
/// destroyed.
///
/// Thread safety: safe.
class leave_gate {
public:
  void open(crew& workers) MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    workers_ = &workers;
  }
  void shut() noexcept MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    workers_ = nullptr;
  }
  void begin() MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    if (workers_ != nullptr) workers_->begin_stop(worker_order::leave);
  }

private:
  mutex mutex_;
  crew* workers_ MUSTER_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace

/// The pool's own part: workers and shutdown.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class pool::impl {
public:
  impl(const pool_options& options, std::shared_ptr<supervisor> watcher, std::shared_ptr<detail::pool_core> core)
      : grace_(options.destructor_grace), core_(std::move(core)), crew_options_(make_crew_options(options)) {
    crew_.emplace(std::move(watcher), core_->shared_board(), crew_options_, *core_);
    crew_->wait_until_greeted();
    leaving_->open(*crew_);
    core_->set_watch(&*crew_);
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;
  ~impl() {
    core_->set_watch(nullptr);
    leaving_->shut();
  }

  [[nodiscard]] crew& workers() noexcept { return *crew_; }
  [[nodiscard]] bool is_owner() const noexcept { return ::getpid() == owner_; }

  void close() {
    if (closing_.exchange(true)) return;
    core_->tasks().close(error_info(errc::pool_closed, "the pool is closed: it takes no more tasks"),
                         [leaving = leaving_] { leaving->begin(); });
  }

  [[nodiscard]] bool is_closing() const noexcept { return closing_; }

  bool wait_until_gone(deadline until) { return crew_->wait_until_gone(until); }

  // Running tasks get the grace, then everything that has not ended is cancelled.
  void terminate(std::chrono::nanoseconds grace) {
    closing_ = true;
    core_->tasks().close(error_info(errc::pool_closed, "the pool was terminated: it takes no more tasks"));
    crew_->stop(grace);
    core_->tasks().stop(error_info(errc::cancelled, "the pool was terminated before the task had ended"));
  }

  void destroy() {
    terminate(grace_);
    core_->callbacks().stop();
  }

private:
  crew_options make_crew_options(const pool_options& options) {
    detail::worker_settings settings;
    settings.initializer = send(options.initializer, initializer_frame_);
    settings.finalizer = send(options.finalizer, finalizer_frame_);
    settings.max_tasks = options.max_tasks_per_worker;
    settings.heap_bytes = options.worker_heap_bytes;
    std::vector<std::byte> payload(sizeof settings);
    std::memcpy(payload.data(), &settings, sizeof settings);
    return {.name = options.name,
            .entry = core_->functions().encode(&detail::run_pool_worker),
            .payload = std::move(payload),
            .start_tries = options.start_tries,
            .start_timeout = options.start_timeout,
            .log = options.log};
  }

  detail::sent_worker_task send(const worker_task& task, block& kept) {
    if (!task) return {};
    auto frame = task.encode(core_->memory(), core_->functions());
    kept = core_->memory().allocate(frame.room().size());
    if (!frame.room().empty()) std::memcpy(kept.data(), frame.room().data(), frame.room().size());
    return {.thunk = static_cast<std::uint64_t>(core_->functions().encode(task.thunk())),
            .frame = kept.ref(),
            .some = true};
  }

  const pid_t owner_ = ::getpid();
  const std::chrono::nanoseconds grace_;
  const std::shared_ptr<detail::pool_core> core_;
  block initializer_frame_;
  block finalizer_frame_;
  const std::shared_ptr<leave_gate> leaving_ = std::make_shared<leave_gate>();
  const crew_options crew_options_;
  std::optional<crew> crew_;
  std::atomic<bool> closing_ = false;
};

pool::pool(const pool_options& options) {
  detail::require_init();
  check(options);
  const auto workers = worker_count(options);
  const domain_options size{.arena_bytes = options.arena_bytes};
  auto watcher = options.isolated ? std::make_shared<supervisor>(size, options.log) : supervisor::of_program(size);
  core_ = std::make_shared<detail::pool_core>(watcher->shared(), watcher->spin(), workers, options);
  impl_ = std::make_unique<impl>(options, std::move(watcher), core_);
}

pool::~pool() {
  if (impl_->is_owner()) {
    impl_->destroy();
    return;
  }
  // A forked child has neither the threads nor a right to the workers: nothing here is its to undo.
  static_cast<void>(impl_.release());  // NOLINT(bugprone-unused-return-value): never destroyed
  // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory the child ends here
  static_cast<void>(new std::shared_ptr<detail::pool_core>(std::move(core_)));
}

void pool::close() { impl_->close(); }

bool pool::drain_until(deadline until) {
  close();
  return core_->tasks().wait_until_empty(until);
}

void pool::terminate() { impl_->terminate(std::chrono::nanoseconds(0)); }

bool pool::join_until(deadline until) {
  if (!impl_->is_closing()) {
    throw error(errc::invalid_argument,
                "join() was called on a pool that still takes tasks: call close() or terminate() first");
  }
  return impl_->wait_until_gone(until);
}

std::vector<worker_info> pool::workers() const { return impl_->workers().workers(); }

pool_statistics pool::stats() const {
  return {.tasks = core_->read_statistics(),
          .workers = impl_->workers().read_statistics(),
          .memory = core_->memory().read_statistics(),
          .pending = core_->tasks().pending()};
}

}  // namespace muster
