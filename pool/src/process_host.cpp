// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/process_host.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/waiting_calls.hpp>
#include <muster/base/descriptor_limit.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/effective_cpus.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/wait/spin_policy.hpp>
#include <muster/pool/detail/pool_core.hpp>
#include <muster/pool/detail/trace_writer.hpp>
#include <muster/process/crew.hpp>
#include <muster/process/init.hpp>

#include "worker_loop.hpp"

namespace muster::detail {

namespace {

std::size_t worker_count(std::size_t asked, std::size_t most, unsigned processors, const char* hint = "") {
  const std::size_t count = asked != 0 ? asked : processors;
  if (count <= most) return count;
  throw error(errc::invalid_argument, text("a pool of ", count, " workers was asked for; possible are 1 to ", most,
                                           ", or 0 for as many as there are processors (", processors, ')', hint));
}

// Workers that share the only processor of the thread that has made them take it from one another by spinning.
spin_policy spin_for(const pinning& pin) {
  auto found = spin_policy::of_process();
  found.processors = std::min(found.processors, pin.processors());
  if (found.processors < 2) found.budget = std::chrono::nanoseconds(0);
  return found;
}

// Two of each worker: its socket and its pidfd. Fewer workers fit into the least that systems usually allow.
void make_room_for(std::size_t workers) noexcept {
  constexpr std::size_t few = 64;
  if (workers > few) make_room_for_descriptors(2 * workers + few);
}

// Slots for tasks that run, and for as many that are queued behind them for one worker each.
board_sizes board_sizes_for(std::size_t most, std::size_t active) {
  constexpr std::size_t per_worker = 4;
  const board_sizes usual;
  return {
      .workers = most, .active = active, .task_slots = std::max(usual.task_slots, std::bit_ceil(per_worker * most))};
}

board_sizes sizes_of(const pool_options& options, std::size_t devices) {
  constexpr std::size_t usual = 64;
  const auto workers =
      worker_count(options.workers != 0 ? options.workers : devices, most_workers, options.pin.processors());
  if (options.max_workers == 0) return board_sizes_for(std::max(workers, usual), workers);
  if (options.max_workers >= workers && options.max_workers <= most_workers)
    return board_sizes_for(options.max_workers, workers);
  throw error(errc::invalid_argument,
              text("pool_options::max_workers is ", options.max_workers, " for a pool of ", workers,
                   " workers; possible are as many as that, to ", most_workers, ", or 0 for at least ", usual));
}

void check_jitter(double jitter, const char* name) {
  if (jitter >= 0 && jitter <= 1) return;  // NaN is neither
  throw error(errc::invalid_argument, text("pool_options::", name, " is ", jitter, ": it is a part, from 0 to 1"));
}

void check_span(std::chrono::nanoseconds span, const char* name) {
  if (span >= span.zero()) return;
  throw error(errc::invalid_argument, text("pool_options::", name, " is negative: ", span.count(), " ns"));
}

void check(const pool_options& options) {
  if (options.start_tries == 0) {
    throw error(errc::invalid_argument, "pool_options::start_tries is 0: a worker must be tried at least once");
  }
  check_span(options.max_worker_age, "max_worker_age");
  check_span(options.overflow_wait, "overflow_wait");
  check_span(options.start_patience, "start_patience");
  check_span(options.start_timeout, "start_timeout");
  check_span(options.destructor_grace, "destructor_grace");
  if (!options.worker_cgroup.empty() && options.worker_memory == 0) {
    throw error(errc::invalid_argument,
                "pool_options::worker_cgroup is given without worker_memory, the limit of the groups made there");
  }
  check_jitter(options.age_jitter, "age_jitter");
  check_jitter(options.tasks_jitter, "tasks_jitter");
}

}  // namespace

namespace {

/// How long each worker has been ready for tasks while times were taken.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class timed_service {
public:
  using members = std::vector<crew_member_statistics>;

  [[nodiscard]] bool is_on() const noexcept { return on_; }
  void begin(const members& now) {
    on_ = true;
    before_.resize(now.size());
    for (std::size_t worker = 0; worker < now.size(); ++worker) before_[worker] -= now[worker].served;
  }
  void end(const members& now) {
    on_ = false;
    before_.resize(now.size());
    for (std::size_t worker = 0; worker < now.size(); ++worker) before_[worker] += now[worker].served;
  }
  [[nodiscard]] std::chrono::nanoseconds of(std::size_t worker, const crew_member_statistics& now) const {
    const auto before = worker < before_.size() ? before_[worker] : std::chrono::nanoseconds(0);
    return on_ ? before + now.served : before;
  }

private:
  bool on_ = false;
  std::vector<std::chrono::nanoseconds> before_;  // while it is on, less what they had served when it began
};

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
class process_host::impl {
public:
  impl(const pool_options& options, std::vector<device_assignment> devices, std::span<const worker_task> contexts,
       std::shared_ptr<supervisor> watcher, std::shared_ptr<pool_core> core)
      : grace_(options.destructor_grace),
        always_timed_(options.timing),
        core_(std::move(core)),
        crew_options_(make_crew_options(options, std::move(devices), contexts)) {
    make_room_for(core_->shared_board().active());
    core_->tasks().time_statistics(always_timed_);
    crew_.emplace(std::move(watcher), core_->shared_board(), crew_options_, *core_);
    if (always_timed_) {
      const scoped_lock lock(trace_mutex_);
      service_.begin(timed_service::members(core_->workers()));  // from the start
    }
    if (options.wait_for_start) {
      crew_->wait_until_greeted();
      core_->start().end();  // of which the supervisor may be about to tell
    }
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
  [[nodiscard]] std::size_t devices() const noexcept { return crew_options_.devices.size(); }
  [[nodiscard]] bool is_owner() const noexcept { return ::getpid() == owner_; }

  void close() {
    if (closing_.exchange(true)) return;
    core_->tasks().close(error_info(errc::pool_closed, "the pool is closed: it takes no more tasks"),
                         [leaving = leaving_] { leaving->begin(); });
  }

  [[nodiscard]] bool is_closing() const noexcept { return closing_; }

  bool wait_until_gone(deadline until) { return crew_->wait_until_gone(until); }

  // The locks keep two calls from ending with the board at one size and the crew at another.
  void resize(std::size_t workers, std::shared_ptr<local_state<void>> done) MUSTER_EXCLUDES(size_mutex_) {
    make_room_for(workers);
    const scoped_lock lock(size_mutex_);
    core_->tasks().set_active(workers);
    crew_->resize(workers, [done = std::move(done)](const error_info* failure) {
      done->complete(failure == nullptr ? outcome<void>::of_value()
                                        : outcome<void>::of_error(error_info::copy_of(*failure)));
    });
  }

  // Running tasks get the grace, then everything that has not ended is cancelled.
  void terminate(std::chrono::nanoseconds grace) {
    closing_ = true;
    core_->tasks().close(reason(errc::pool_closed, "the pool was terminated: it takes no more tasks"));
    crew_->stop(grace);
    const auto why = reason(errc::cancelled, "the pool was terminated before the task had ended");
    core_->tasks().stop(why);
    core_->waiting().end_all(why);
    core_->start().end(reason(errc::cancelled, "the pool was terminated before its workers had started"));
  }

  // The pool's thread for steps may be here, with the value of a future that was its last owner. The steps behind it go
  // on meanwhile: a callback that is waited for may wait for them.
  void destroy() {
    const auto steps_go_on = callback_pause::if_possible();
    terminate(grace_);
    core_->stop_callbacks();
    if (core_->attendant() != nullptr) core_->attendant()->stop();
    try {
      end_trace();
    } catch (const error& failure) {
      crew_options_.log(log_level::error, failure.what());
    }
  }

  void trace_to(const std::filesystem::path& file) MUSTER_EXCLUDES(trace_mutex_) {
    const scoped_lock lock(trace_mutex_);
    finish_trace();
    trace_text text([core = core_.get()](function_token token) { return core->name_of(token); });
    text.add_rows(crew_options_.name, core_->workers());
    trace_ = std::make_unique<trace_writer>(file, core_->tasks(), std::move(text));
    core_->set_names_functions(true);
    if (!always_timed_) service_.begin(crew_->read_member_statistics());
  }

  void end_trace() MUSTER_EXCLUDES(trace_mutex_) {
    const scoped_lock lock(trace_mutex_);
    finish_trace();
  }

  [[nodiscard]] std::vector<worker_statistics> read_workers() MUSTER_EXCLUDES(trace_mutex_) {
    const auto counts = core_->tasks().read_worker_counts();
    const auto memory = core_->memory().read_participants();
    const scoped_lock lock(trace_mutex_);
    const auto members = crew_->read_member_statistics();
    std::vector<worker_statistics> found;
    for (std::size_t worker = 0; worker < members.size(); ++worker) {
      const auto& each = members[worker];
      const auto working = counts[worker].working;
      const auto of_arena = memory_of(each.now.pid, memory);
      found.push_back({.index = worker,
                       .pid = each.now.pid,
                       .incarnation = each.now.incarnation,
                       .state = each.now.state,
                       .tasks_done = counts[worker].done,
                       .working = working,
                       .idle = std::max(service_.of(worker, each) - working, std::chrono::nanoseconds(0)),
                       .start_up = each.start_up,
                       .held_bytes = of_arena.held_bytes,
                       .warm_bytes = of_arena.warm_bytes,
                       .processes = each.processes});
    }
    return found;
  }

private:
  // A destructor may need it, and there may be no memory for the text.
  [[nodiscard]] static error_info reason(errc code, std::string_view text) noexcept {
    return error_info::described(code, [&] { return std::string(text); });
  }

  [[nodiscard]] static participant_memory memory_of(pid_t pid, std::span<const participant_memory> all) {
    const auto is_its = [pid](const auto& each) { return pid != 0 && each.pid == static_cast<std::uint32_t>(pid); };
    const auto found = std::ranges::find_if(all, is_its);
    return found != all.end() ? *found : participant_memory{};
  }

  void finish_trace() MUSTER_REQUIRES(trace_mutex_) {
    const auto ended = std::move(trace_);
    if (ended == nullptr) return;
    core_->set_names_functions(false);
    if (!always_timed_) service_.end(crew_->read_member_statistics());
    ended->finish();
  }

  crew_options make_crew_options(const pool_options& options, std::vector<device_assignment> devices,
                                 std::span<const worker_task> contexts) {
    worker_settings settings;
    settings.initializer = send(options.initializer);
    settings.finalizer = send(options.finalizer);
    settings.contexts = send_all(contexts);
    settings.context_count = contexts.size();
    settings.max_tasks = options.max_tasks_per_worker;
    settings.tasks_jitter = options.tasks_jitter;
    settings.heap_bytes = options.worker_heap_bytes;
    settings.max_rss = options.max_worker_rss;
    settings.memory_limit = options.worker_cgroup.empty() ? options.worker_memory : 0;
    settings.early_successors = options.early_successors ? 1 : 0;
    std::vector<std::byte> payload(sizeof settings);
    std::memcpy(payload.data(), &settings, sizeof settings);
    return {.name = options.name,
            .entry = core_->functions().encode(&run_pool_worker),
            .payload = std::move(payload),
            .start_tries = options.start_tries,
            .start_patience = options.start_patience,
            .start_timeout = options.start_timeout,
            .capture = options.output.capture(),
            .crash_reports = options.crash_reports,
            .leaves_signals = options.leaves_signals,
            .ignored_signals = options.ignored_signals,
            .own_groups = options.worker_groups,
            .max_age = options.max_worker_age,
            .age_jitter = options.age_jitter,
            .devices = std::move(devices),
            .cpus = options.pin.resolve(),
            .memory_group = options.worker_cgroup,
            .memory_limit = options.worker_memory,
            .early_successors = options.early_successors,
            .loop_bell = core_->attendant() != nullptr ? core_->attendant()->bell() : -1,
            .log = options.log};
  }

  block_ref send_all(std::span<const worker_task> tasks) {
    if (tasks.empty()) return {};
    std::vector<sent_worker_task> sent;
    for (const auto& each : tasks) sent.push_back(send(each));
    const auto& kept = frames_.emplace_back(core_->memory().allocate(std::span(sent).size_bytes()));
    std::memcpy(kept.data(), sent.data(), std::span(sent).size_bytes());
    return kept.ref();
  }

  sent_worker_task send(const worker_task& task) {
    if (!task) return {};
    auto frame = task.encode(core_->memory(), core_->functions());
    const auto& kept = frames_.emplace_back(core_->memory().allocate(frame.room().size()));
    if (!frame.room().empty()) std::memcpy(kept.data(), frame.room().data(), frame.room().size());
    return {.thunk = static_cast<std::uint64_t>(core_->functions().encode(task.thunk())),
            .frame = kept.ref(),
            .some = true};
  }

  const pid_t owner_ = ::getpid();
  const std::chrono::nanoseconds grace_;
  const bool always_timed_;
  const std::shared_ptr<pool_core> core_;
  std::vector<block> frames_;  // of what workers run besides tasks
  const std::shared_ptr<leave_gate> leaving_ = std::make_shared<leave_gate>();
  const crew_options crew_options_;
  std::optional<crew> crew_;
  std::atomic<bool> closing_ = false;
  mutex size_mutex_;
  mutex trace_mutex_;
  timed_service service_ MUSTER_GUARDED_BY(trace_mutex_);
  std::unique_ptr<trace_writer> trace_ MUSTER_GUARDED_BY(trace_mutex_);
};

process_host::process_host(const pool_options& options, boost::asio::io_context* loop,
                           std::span<const worker_task> contexts) {
  require_init();
  check(options);
  const domain_options size{
      .arena_bytes = options.arena_bytes, .prefault_bytes = options.prefault_bytes, .huge_pages = options.huge_pages};
  auto devices = options.devices.resolve();
  auto watcher = options.isolated ? std::make_shared<supervisor>(size, options.log) : supervisor::of_program(size);
  core_ = std::make_shared<pool_core>(watcher->shared(), spin_for(options.pin), sizes_of(options, devices.size()),
                                      options, loop, devices);
  if (loop != nullptr) core_->attendant()->attend(core_);
  try {
    impl_ = std::make_unique<impl>(options, std::move(devices), contexts, std::move(watcher), core_);
  } catch (...) {
    core_->stop_callbacks();  // workers that failed may have written
    if (loop != nullptr) core_->attendant()->stop();
    throw;
  }
}

process_host::~process_host() {
  if (impl_->is_owner()) {
    impl_->destroy();
    return;
  }
  // A forked child has neither the threads nor a right to the workers: nothing here is its to undo.
  static_cast<void>(impl_.release());  // NOLINT(bugprone-unused-return-value): never destroyed
  leave_to_parent(std::move(core_));
}

process_host::impl& process_host::own() const {
  core_->require_here();
  return *impl_;
}

void process_host::close() { own().close(); }

bool process_host::drain_until(deadline until) {
  close();
  const auto what_it_waits_for_may_be_behind_us = callback_pause::until(until);
  return core_->tasks().wait_until_empty(until);
}

future<void> process_host::drain_async() {
  close();
  auto drained = std::make_shared<local_state<void>>();
  core_->tasks().close(error_info(errc::pool_closed, "the pool is closed: it takes no more tasks"),
                       [drained] { drained->complete(outcome<void>::of_value()); });
  return future_access::of_source<void>(core_, std::move(drained));
}

future<void> process_host::resize_async(std::size_t workers) {
  const auto wanted = workers != 0 ? workers : own().devices();
  const auto count = worker_count(wanted, core_->most_workers(), effective_cpus(), " (pool_options::max_workers)");
  if (own().is_closing()) throw error(errc::pool_closed, "the pool is closed: it cannot be resized");
  auto resized = std::make_shared<local_state<void>>();
  own().resize(count, resized);
  return future_access::of_source<void>(core_, std::move(resized));
}
future<void> process_host::started() const { return future_access::of_source<void>(core_, core()->start().add()); }

void process_host::terminate() { own().terminate(std::chrono::nanoseconds(0)); }

bool process_host::join_until(deadline until) {
  if (!own().is_closing()) {
    throw error(errc::invalid_argument,
                "join() was called on a pool that still takes tasks: call close() or terminate() first");
  }
  const auto what_it_waits_for_may_be_behind_us = callback_pause::until(until);
  return own().wait_until_gone(until);
}

std::vector<worker_info> process_host::workers() const { return own().workers().workers(); }

pool_statistics process_host::stats() const {
  return {.tasks = core_->read_statistics(),
          .workers = own().workers().read_statistics(),
          .memory = core_->memory().read_statistics(),
          .pending = core_->tasks().pending(),
          .each_worker = own().read_workers(),
          .slowest = core_->tasks().read_slowest()};
}

void process_host::trace_to(const std::string& file) { own().trace_to(file); }

void process_host::end_trace() { own().end_trace(); }

}  // namespace muster::detail
