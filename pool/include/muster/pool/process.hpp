// SPDX-License-Identifier: BSL-1.0
#pragma once

// A function in a supervised process of its own.
//
//     muster::process loader(load, "data.bin");
//     while (loader.is_alive()) { …; loader.watch(); }   // throws what load threw, or how the process died

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <muster/async/future.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/exit_status.hpp>
#include <muster/base/log.hpp>
#include <muster/pool/detail/process_call.hpp>
#include <muster/pool/device_choice.hpp>
#include <muster/process/init.hpp>

namespace muster {

/// What a process is made with.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct process_options {
  std::string name = "process";  ///< shown in logs, errors and ps
  /// How long starting may take.
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  /// How long terminate() and the destructor wait between SIGTERM and SIGKILL.
  std::chrono::nanoseconds grace = std::chrono::milliseconds(100);
  /// The GPU that it is pinned to: the first of these, as pool_options::devices says. None: it sees what the program
  /// sees.
  device_choice devices{};
  /// Receives the messages about the process.
  log_sink log = log_to_stderr;
};

/// Runs `f(args...)` in a process of its own, which ends when the function does: with exit code 0 when it returned,
/// whatever it returned; with another when it threw. A function that executes another program (exec), or closes all
/// descriptors, has the process killed: watch() says so. The process is this program executed anew (muster::init), is
/// supervised, and dies with this program.
///
/// Callables and arguments are those that pools take (pool_calls.hpp): events, tensors and the like are shared.
/// Thread safety: distinct objects: safe. Shared objects: safe, except destruction and assignment.
/// Process safety: belongs to the process that made it. In a forked child calls throw errc::forked, and the destructor
/// does nothing.
/// Cost: a few milliseconds, three descriptors while it lives, and a few hundred KiB of shared memory.
class process {
public:
  /// Starts it, and waits until it has proved to be this very build. Throws muster::error: errc::not_initialized,
  /// errc::module_mismatch, errc::start_failed, errc::out_of_memory, EMFILE; errc::invalid_argument for a device that
  /// there is not; and what serialize functions throw.
  ///@{
  template <class F, class... Args>
    requires(!std::is_same_v<F, process> && !std::is_same_v<F, process_options>)
  explicit process(F f, Args&&... args) : process(process_options(), std::move(f), std::forward<Args>(args)...) {}
  template <class F, class... Args>
  process(const process_options& options, F f, Args&&... args) : process(options) {
    detail::check_process_call<F, sent_as<Args>...>();
    start(detail::submit_process_call(core(), std::move(f), args...));
  }
  ///@}

  /// Takes over the process. Calls of `other` throw errc::invalid_argument afterwards.
  process(process&& other) noexcept;
  /// As destruction, of what this one was.
  process& operator=(process&& other) noexcept;
  /// As terminate(), if it still runs. Bounded; never throws.
  ~process();

  /// Waits until the process has ended, and everything that it had was recovered.
  /// Unblocked by: its end, however that comes about.
  void join() const { static_cast<void>(join_until(deadline::never())); }
  /// Waits for a limited time. Returns false when the time passed first.
  ///@{
  template <class Rep, class Period>
  [[nodiscard]] bool join_for(std::chrono::duration<Rep, Period> time) const {
    return join_until(deadline::after(time));
  }
  [[nodiscard]] bool join_until(deadline until) const;
  ///@}

  /// Whether it runs; from its end on false, and join() returns at once.
  [[nodiscard]] bool is_alive() const;

  /// Throws the function's exception as future::get() does, or worker_died with exit code or signal if the process
  /// ended otherwise than with exit code 0. Returns when it still runs, or has ended well. Never blocks; each call says
  /// the same.
  void watch() const;

  /// Its number, also after its end, when another process may have it.
  [[nodiscard]] pid_t pid() const;
  /// How it ended; nothing while it is alive.
  [[nodiscard]] std::optional<muster::exit_status> exit_status() const;

  /// Sends it a signal; false when it has ended. Never another process that has its number.
  bool kill(int signal) const;
  /// SIGTERM, and SIGKILL if it is not gone within process_options::grace; waits for its end. Bounded: a process that
  /// does not even die of SIGKILL is logged and left behind after some seconds.
  void terminate() const;

private:
  class impl;
  explicit process(const process_options& options);
  [[nodiscard]] const std::shared_ptr<detail::pool_core>& core() const;
  void start(future<void> call);
  [[nodiscard]] impl& self() const;

  std::unique_ptr<impl> impl_;
};

}  // namespace muster
