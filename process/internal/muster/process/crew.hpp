// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <muster/base/cpu_list.hpp>
#include <muster/base/device.hpp>
#include <muster/base/exit_status.hpp>
#include <muster/base/log.hpp>
#include <muster/process/detail/device_assignment.hpp>
#include <muster/process/detail/supervisor.hpp>
#include <muster/process/lifecycle.hpp>
#include <muster/process/worker_environment.hpp>
#include <muster/process/worker_info.hpp>
#include <muster/process/worker_output.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/dispatcher.hpp>

namespace muster {

/// What a crew is made of.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct crew_options {
  std::string name = "pool";
  std::string kind = "pool";         ///< what messages call it
  function_token entry{};            ///< a worker_entry, named in the board's module directory
  std::vector<std::byte> payload{};  ///< for the entry
  bool replaces = true;              ///< a worker that ends after it was accepted; else nobody takes its place
  unsigned start_tries = 3;          ///< starts in a row that may fail before the crew gives up
  /// Starts that fail for want of processes, memory or descriptors (EAGAIN, ENOMEM, EMFILE, ENFILE; ENOBUFS and
  /// ETOOMANYREFS of a message), or, of a worker that takes another's place, of numbers of the domain
  /// (errc::out_of_memory), do not count: they are tried again after 10 ms, 20 ms, … 5 s. The crew gives up when there
  /// has been no process for so long that could be welcomed, and whoever waits for all workers is told after that time.
  /// 0: they count.
  std::chrono::nanoseconds start_patience = std::chrono::seconds(30);
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);  ///< from start to ready
  std::string program{};  ///< that workers execute; empty: this one, in the way in which it was started
  output_capture capture = output_capture::none;  ///< what becomes of the workers' stdout and stderr
  bool crash_reports = true;                      ///< who crashes says where; never under sanitizers
  bool leaves_signals = false;                    ///< SIGTERM, SIGHUP and SIGQUIT do nothing to workers, as SIGINT
  std::vector<int> ignored_signals{};             ///< that do nothing to workers either
  bool own_groups = true;                         ///< each worker leads a process group, which is killed when it ends
  std::chrono::nanoseconds max_age{};             ///< of a worker, from when it was ready; 0: it may get any age
  double age_jitter = 0;                          ///< by up to that part of max_age it is less, by chance
  std::vector<device_assignment> devices{};       ///< of the workers, in turn; none: they have no devices
  /// Where workers may run, in turn; none: near their devices, if that is known, else wherever the thread may that
  /// makes the crew. So does one whose processors have been taken from the program meanwhile, which is logged once.
  std::vector<cpu_list> cpus{};
  std::filesystem::path memory_group{};  ///< where each process gets a control group of its own; empty: nowhere
  std::uint64_t memory_limit = 0;        ///< of such a group
  bool early_successors = true;          ///< who leaves in good order goes when another process is ready in its place
  int loop_bell = -1;  ///< eventfd of a loop that drains in the supervisor's place; borrowed; -1: there is none
  log_sink log = log_to_stderr;
};

/// Who is told what happens to a crew's workers. Called on the supervisor's thread: no user code, no waiting, no
/// exceptions.
class crew_client {
public:
  /// A process was started for `worker`.
  virtual void worker_started(std::size_t worker, pid_t pid) noexcept = 0;
  /// Every worker has been accepted at least once. May be called again.
  virtual void crew_greeted() noexcept {}
  /// All workers will be killed now, because the crew is stopped: what they die of says nothing about their tasks.
  virtual void crew_will_be_killed() noexcept {}
  /// A worker wrote a line: with output_capture::lines only, in order, the last of a process before its worker_ended.
  virtual void worker_wrote(const worker_output& /*line*/) noexcept {}
  /// The process of `worker` is gone: settle what it had. Blocks are recovered after this.
  virtual void worker_ended(std::size_t worker, const exit_status& how, const last_words& words) noexcept = 0;
  /// No worker can be started, for the reason given; those that ran are gone.
  virtual void crew_broken(const error_info& why) noexcept = 0;
  /// Completions may have been entered into rings: look, and arm the bell again.
  virtual void bell_rang() noexcept = 0;
  /// Writes again what a starting worker reads in shared memory; true if somebody had overwritten it.
  virtual bool repair_start() noexcept { return false; }
  /// Whether there are tasks that only this worker may run, beyond the crew's size as it is: then another process
  /// finishes them. Called when one of those has ended.
  virtual bool needs_worker(std::size_t /*worker*/) noexcept { return false; }
  /// Looks for damage in shared memory. Called from time to time after crew::watch, until it says that no more is due.
  virtual audit_report audit() noexcept { return {}; }
  /// Finds workers that have been at a task for too long. Called when crew::watch_time said so, or the last report.
  virtual overdue_report check_times() noexcept { return {}; }
  /// The supervisor's thread did not run for a while, as after SIGSTOP. Called while a time is awaited for which
  /// crew::watch_time or the last report asked, and before check_times().
  virtual void host_paused(const host_pause& /*which*/) noexcept {}
  /// All workers are gone and recovered, because damage was repeated: others are started after this.
  virtual void crew_replaced() noexcept {}

protected:
  ~crew_client() = default;
};

/// One worker, and what became of its processes.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct crew_member_statistics {
  worker_info now;
  crew_statistics processes;            ///< of this worker only
  std::chrono::nanoseconds start_up{};  ///< of the process that became ready last: from its start until then
  std::chrono::nanoseconds served{};    ///< how long its processes have been ready for tasks, all together
};

/// The supervised workers of one board: as many processes as it has active workers, each replaced when it ends.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: belongs to the process that made it; in a forked child its destructor does nothing.
/// Lifetime: borrows board and client, which must outlive it.
class crew {
public:
  /// Starts the workers; does not wait for them.
  crew(std::shared_ptr<supervisor> watcher, board& tasks, crew_options options, crew_client& client);
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  /// As stop(0).
  ~crew();

  /// Waits until every worker has been accepted once. Throws why the crew broke, if it did, or for want of what some
  /// cannot be started although others run.
  /// Unblocked by: the last acceptance; the crew's breaking, at the latest after all tries have timed out;
  /// start_patience.
  void wait_until_greeted();

  /// From now on there are `size` workers, the first ones, as board::active() says already. Those beyond finish what
  /// only they may run, and leave. Returns at once. `done` is called on the supervisor's thread, once: when all of them
  /// have been accepted and none beyond is left, after this or a later call; or with why that will not be, or has not
  /// been within start_patience, and is tried still. It must not
  /// run user code. Requires: from 1 to the board's workers.
  void resize(std::size_t size, std::function<void(const error_info* failure)> done);
  /// A worker beyond the size has got a task: has a process started for it, unless there is one. Returns at once.
  void call_back(std::size_t worker) noexcept;

  /// Tells the workers to leave, kills those that are still there after `grace`, and waits until all are gone.
  /// Bounded: a process that does not even die of SIGKILL is logged and left behind after some seconds.
  void stop(std::chrono::nanoseconds grace, worker_order how = worker_order::leave);
  /// Has the workers told to leave, and returns; see wait_until_gone. May be called on the supervisor's thread.
  void begin_stop(worker_order how) noexcept;
  /// Waits until no worker is left; false when `until` passed first. Requires: begin_stop was called, or workers are
  /// not replaced.
  bool wait_until_gone(deadline until);

  /// Sends a signal to a worker's process; false when there is none. Requires: not called on the supervisor's thread.
  bool send(std::size_t worker, int signal);

  /// Has the client audited from time to time, and does what it finds; on the supervisor's thread. Returns at once.
  void watch() noexcept;
  /// Has the client look at its timed tasks at that time, and kills whom it names; likewise.
  void watch_time(clock::time_point when) noexcept;

  [[nodiscard]] std::vector<worker_info> workers() const;
  [[nodiscard]] crew_statistics read_statistics() const;
  /// By worker.
  [[nodiscard]] std::vector<crew_member_statistics> read_member_statistics() const;

  class impl;

private:
  std::shared_ptr<supervisor> supervisor_;  // outlives impl_ and its handlers
  std::shared_ptr<impl> impl_;
};

}  // namespace muster
