// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/process.hpp>

#include <unistd.h>

#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/wait/spin_policy.hpp>
#include <muster/pool/detail/pool_core.hpp>
#include <muster/pool/pool_options.hpp>
#include <muster/process/crew.hpp>
#include <muster/process/detail/supervisor.hpp>

#include "worker_loop.hpp"

namespace muster {

/// A crew of one that is not replaced, and its one task.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class process::impl final : public crew_client {
public:
  explicit impl(const process_options& options) : options_(options), devices_(first_of(options.devices.resolve())) {
    detail::require_init();
    supervisor_ = supervisor::of_program({});
    core_ = std::make_shared<detail::pool_core>(
        supervisor_->shared(), spin_policy::of_process(), board_sizes{.workers = 1},
        pool_options{.name = options_.name, .log = options_.log}, nullptr, devices_);
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;
  ~impl() {
    core_->set_watch(nullptr);
    crew_.reset();  // waits until the process is gone
    core_->tasks().stop(error_info(errc::cancelled, "the process object is gone"));
  }

  [[nodiscard]] const std::shared_ptr<detail::pool_core>& core() const noexcept { return core_; }
  [[nodiscard]] bool is_owner() const noexcept { return ::getpid() == owner_; }
  void require_here() const { made_in_.require_here("a process object"); }

  void start(future<void> call) {
    {
      const scoped_lock lock(mutex_);
      call_ = std::move(call);
    }
    crew_.emplace(supervisor_, core_->shared_board(),
                  crew_options{.name = options_.name,
                               .kind = "process",
                               .entry = core_->functions().encode(&detail::run_process),
                               .replaces = false,
                               .start_tries = 1,
                               .start_patience = std::chrono::nanoseconds(0),
                               .start_timeout = options_.start_timeout,
                               .devices = devices_,
                               .log = options_.log},
                  *this);
    crew_->wait_until_greeted();
    core_->set_watch(&*crew_);
  }

  bool join_until(deadline until) { return crew_->wait_until_gone(until); }

  void watch() MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    if (!outcome_ && call_.ready()) outcome_ = call_.get_result();
    const bool threw = outcome_ && !outcome_->has_value() && !is_death(outcome_->error());
    if (threw) outcome_->error().raise();
    if (status_ && !status_->success()) {
      auto death = error_info::died(*status_, text("the process '", options_.name, "' (", pid_, ')'));
      death.set_words(words_);
      death.raise();
    }
  }

  [[nodiscard]] pid_t pid() const MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    return pid_;
  }
  [[nodiscard]] std::optional<muster::exit_status> status() const MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    return status_;
  }

  bool kill(int signal) { return crew_->send(0, signal); }

  void terminate() {
    if (!crew_ || join_until(deadline(clock::time_point()))) return;  // it may never have been started
    kill(SIGTERM);
    if (!join_until(deadline::after(options_.grace))) crew_->stop(std::chrono::nanoseconds(0));
  }

private:
  static std::vector<device_assignment> first_of(std::vector<device_assignment> all) {
    if (all.size() > 1) all.resize(1);
    return all;
  }
  // Its own, not one that its function has thrown on.
  static bool is_death(const error_info& error) { return error == errc::worker_died && error.type_name().empty(); }

  // The supervisor's thread.
  void worker_started(std::size_t worker, pid_t pid) noexcept override {
    core_->worker_started(worker, pid);
    const scoped_lock lock(mutex_);
    pid_ = pid;
  }
  void worker_ended(std::size_t worker, const muster::exit_status& how, const last_words& words) noexcept override {
    {
      const scoped_lock lock(mutex_);
      status_ = how;
      words_ = words;
    }
    core_->worker_ended(worker, how, words);
    auto why = error_info::died(how);
    why.set_words(words);
    core_->tasks().stop(why);  // also a call that it had not begun: nobody else will
  }
  void crew_broken(const error_info& why) noexcept override { core_->crew_broken(why); }
  void bell_rang() noexcept override { core_->bell_rang(); }
  bool repair_start() noexcept override { return core_->repair_start(); }
  audit_report audit() noexcept override { return core_->audit(); }
  overdue_report check_times() noexcept override { return core_->check_times(); }
  void host_paused(const host_pause& which) noexcept override { core_->host_paused(which); }

  const pid_t owner_ = ::getpid();
  const process_mark made_in_;
  const process_options options_;
  const std::vector<device_assignment> devices_;  // none, or its own
  std::shared_ptr<supervisor> supervisor_;
  std::shared_ptr<detail::pool_core> core_;

  mutable mutex mutex_;
  future<void> call_ MUSTER_GUARDED_BY(mutex_);
  std::optional<result<void>> outcome_ MUSTER_GUARDED_BY(mutex_);  // of the function
  std::optional<muster::exit_status> status_ MUSTER_GUARDED_BY(mutex_);
  last_words words_ MUSTER_GUARDED_BY(mutex_);
  pid_t pid_ MUSTER_GUARDED_BY(mutex_) = 0;

  std::optional<crew> crew_;
};

process::process(const process_options& options) : impl_(std::make_unique<impl>(options)) {}
process::process(process&& other) noexcept = default;

process& process::operator=(process&& other) noexcept {
  process(std::move(other)).impl_.swap(impl_);
  return *this;
}

process::~process() {
  if (!impl_) return;
  if (!impl_->is_owner()) {  // a forked child has neither the supervisor's thread nor a right to its siblings
    static_cast<void>(impl_.release());  // NOLINT(bugprone-unused-return-value): never destroyed
    return;
  }
  try {
    terminate();
  } catch (const std::exception& failure) {
    log_to_stderr(log_level::error, text("a process could not be terminated in order: ", failure.what()));
  }
}

process::impl& process::self() const {
  if (!impl_) throw error(errc::invalid_argument, "this process object refers to nothing: it was moved from");
  impl_->require_here();
  return *impl_;
}

const std::shared_ptr<detail::pool_core>& process::core() const { return self().core(); }
void process::start(future<void> call) { self().start(std::move(call)); }
bool process::join_until(deadline until) const { return self().join_until(until); }
bool process::is_alive() const { return !self().join_until(deadline(clock::time_point())); }
void process::watch() const { self().watch(); }
pid_t process::pid() const { return self().pid(); }
std::optional<muster::exit_status> process::exit_status() const { return self().status(); }
bool process::kill(int signal) const { return self().kill(signal); }
void process::terminate() const { self().terminate(); }

}  // namespace muster
