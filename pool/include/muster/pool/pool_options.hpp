// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/base/log.hpp>
#include <muster/memory/arena_statistics.hpp>
#include <muster/pool/device_choice.hpp>
#include <muster/pool/output_choice.hpp>
#include <muster/pool/pinning.hpp>
#include <muster/pool/worker_task.hpp>
#include <muster/queue/overflow_policy.hpp>

namespace muster {

/// What a pool is made of. All have defaults; `muster::pool pool({.workers = 4});`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct pool_options {
  /// Worker processes, at most 1000. Each takes two of this process's descriptors; beyond 64 workers the soft limit of
  /// them (RLIMIT_NOFILE) is raised where it is too low and the hard limit allows. 0: as many as this process may keep
  /// processors busy (effective_cpus()), or, with `devices`, one for each of them. Each has the environment that the
  /// program had when the pool was made, whenever it is started.
  unsigned workers = 0;
  /// How many pool::resize may make of them, at most 1000; each costs some 20 to 140 KiB of address space. 0: 64, or as
  /// many as `workers` if that is more.
  unsigned max_workers = 0;
  /// Shown in logs, errors and ps.
  std::string name = "pool";
  /// Run in every worker before its first task, and in each that takes its place. If it fails `start_tries` times in
  /// a row the pool is broken: everything pending and every later call fails with its error.
  worker_task initializer{};
  /// Run in a worker that leaves in good order: on close and join, and when it is recycled. Not in one that is killed.
  worker_task finalizer{};
  /// A worker is replaced after so many tasks (elements, for map; it finishes the chunk that it is at). 0: never.
  std::uint64_t max_tasks_per_worker = 0;
  /// A worker is replaced when it has worked for so long; what it runs then, it finishes. 0: never.
  std::chrono::nanoseconds max_worker_age{};
  /// A worker is replaced when it has so much memory of its own in use after a task: resident, without files' pages and
  /// shared memory, so that tensors do not count. It looks after its first task, then at most every 50 ms; a look takes
  /// some microseconds. 0: it may have any amount. See also worker_memory.
  std::size_t max_worker_rss = 0;
  /// So that workers that started together are not replaced together, a worker's max_worker_age and
  /// max_tasks_per_worker are less by a part that is chosen by chance, from nothing to this; from 0 to 1.
  ///@{
  double age_jitter = 0.1;
  double tasks_jitter = 0;
  ///@}
  /// A worker that is to be replaced for its age, memory or number of tasks (if they are more than one) goes on until
  /// another process has been started and initialized in its place; the other begins when it has gone, so a replacement
  /// takes no time from the tasks, however long an initializer takes, but there are two processes for a while. false:
  /// the next one is started when it has gone.
  bool early_successors = true;
  /// Which GPUs workers are pinned to, each to one; by default none. In a program that is linked with muster::cuda a
  /// worker opens its device, and sees that it works, before the initializer; that it does not counts as a start that
  /// failed. One whose device is full starts all the same, and tasks that need it fail with errc::out_of_memory; one of
  /// early_successors opens it when its predecessor has gone. A task that finds its device broken ends with
  /// errc::device_lost, and its worker is replaced. See device_choice, this_worker::replace_after_task.
  device_choice devices{};
  /// Which processors workers may run on; by default all that the process may (process_cpus()), whatever the calling
  /// thread is bound to, or, with `devices`, those near the worker's device. See pinning.
  pinning pin{};
  /// The most memory of its own that a worker may ask the kernel for (RLIMIT_DATA, set before the initializer runs):
  /// beyond it, allocations fail in the worker, mostly as std::bad_alloc, which is the task's error. 0: no limit but
  /// the program's. Not under the address and thread sanitizers, whose own memory would count.
  std::size_t worker_memory = 0;
  /// A directory of the control group file system that the program may write to, such as a delegated one: worker_memory
  /// is then the limit of a control group that each worker process gets in there, so that pages of files, shared memory
  /// that it touches first, and what it starts count too, and no allocation fails. Beyond it the kernel kills the
  /// worker, and the error of its task says why (error_info::crash). Version 2, with `memory` in the directory's
  /// cgroup.subtree_control, or version 1's memory controller. A program that is killed leaves empty groups behind,
  /// which the next one in the same place removes.
  std::string worker_cgroup{};
  /// What becomes of what workers write to stdout and stderr: by default it goes where the program's goes. See
  /// output_choice.
  output_choice output{};
  /// A worker that crashes (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) says before it dies where it was, and the error
  /// of its task has that as error_info::crash(). Signals for which the program has handlers of its own, from before
  /// muster::init or set in an initializer or task, are left alone. Never under sanitizers, which report themselves.
  /// The error of a worker that std::terminate has ended has type and text of the exception in any case, unless the
  /// program has installed a terminate handler of its own.
  bool crash_reports = true;
  /// Workers go on when they get a signal by which programs are told to end (SIGTERM, SIGHUP, SIGQUIT): what shells,
  /// `timeout` and service managers send to all processes at once is for the program to answer, which lets its workers
  /// finish (pool::drain) or not. Programs that tasks execute have these signals, and SIGINT, as usual. false: they
  /// end a worker. SIGINT never does.
  bool leaves_signals = true;
  /// Further signals that workers ignore: of SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
  /// SIGSTKFLT, SIGXCPU and the real-time signals; others throw errc::invalid_argument. Workers ignore these anyhow if
  /// the program handles or ignores them when the worker is started, or blocks them, as for sigwait, in the thread that
  /// makes the pool: log rotation and schedulers send them to all processes, and mean the program. Without SIGPIPE,
  /// writing to a closed pipe fails with EPIPE. Programs that tasks execute have all of them as usual.
  std::vector<int> ignored_signals{};
  /// Every worker leads a process group of its own, and what its tasks have started dies when it ends, in whatever way:
  /// a timeout that kills a worker leaves no compiler or shell running behind. What is to outlive it makes a group of
  /// its own (setsid, setpgid). false: workers are in the program's group, with what a terminal sends to that, and what
  /// tasks have started goes on.
  bool worker_groups = true;
  /// How much freed memory a worker keeps for its next task, at most 2 GiB. Large arguments that are copied out of
  /// shared memory are faster then, because their pages are there already; a worker that had large ones stays large.
  /// 0: what malloc does by itself, which is to give pieces above 32 MiB back at once.
  std::size_t worker_heap_bytes = 0;
  /// How many calls may be accepted and not ended; for one more, `overflow` says what happens. 0: without limit. apply
  /// and apply_async count as one, broadcast as one for each worker, and map and starmap, also _async, as one however
  /// many elements they have. Streams do not count, since their window bounds them, nor do calls that are let through
  /// because somebody may wait for them: those that tasks of this pool make, and those whose arguments are futures.
  std::size_t max_pending = 0;
  /// What happens to one call more, and how long it waits under overflow_policy::block.
  ///@{
  overflow_policy overflow = overflow_policy::block;
  std::chrono::nanoseconds overflow_wait = std::chrono::nanoseconds::max();
  ///@}
  /// A task, or an element of a map, that has killed so many workers is not tried again, whatever its retries: it ends
  /// with errc::quarantined. 0: it is tried as often as was asked for.
  unsigned quarantine_after = 2;
  /// The most that all payloads in flight may take in shared memory, for the pool that makes the program's domain.
  /// Memory is used only for what is touched. 0: as much as the machine, the control group, RLIMIT_FSIZE and half of
  /// RLIMIT_AS allow.
  std::size_t arena_bytes = 0;
  /// How much of it is to be there from the start, and whether big blocks are made of huge pages; as arena_bytes, for
  /// the pool that makes the domain. See domain_options.
  ///@{
  std::size_t prefault_bytes = 0;
  muster::huge_pages huge_pages = muster::huge_pages::none;
  ///@}
  /// A domain of its own: no shared memory in common with other pools.
  bool isolated = false;
  /// Starts in a row that may fail before the pool is broken, and how long one may take, opening its device and the
  /// initializer included.
  ///@{
  unsigned start_tries = 3;
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  ///@}
  /// Starts that fail for want of processes, memory or descriptors, or, of a replacement, of participants' numbers of
  /// the domain, are not among those: they are tried again, after 10 ms, 20 ms, … 5 s, while the other workers serve.
  /// The pool is broken when it has had no worker at all for so long; the constructor, and the future of pool::resize,
  /// fail when some workers could not be started for so long.
  std::chrono::nanoseconds start_patience = std::chrono::seconds(30);
  /// Whether the constructor waits until every worker has proved to be this very build. Else it returns at once, tasks
  /// wait for the workers, and a pool that cannot be started is broken: every call fails with its error. See
  /// pool::started().
  bool wait_for_start = true;
  /// How long the destructor lets running tasks finish before it kills.
  std::chrono::nanoseconds destructor_grace = std::chrono::milliseconds(100);
  /// Whether workers say when they begin and end tasks, for worker_statistics::working and idle, and for
  /// pool_statistics::slowest; it is so anyway while a trace is taken (pool::trace_to). It costs some readings of the
  /// clock per task, a fifth of a microsecond or so in all.
  bool timing = false;
  /// Receives the messages about the pool and its workers.
  log_sink log = log_to_stderr;
};

}  // namespace muster
