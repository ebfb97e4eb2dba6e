// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>

#include <muster/serialize/error_info.hpp>

namespace muster {

/// The life of one worker index, as a state machine without I/O: it is told what happened and answers what to do.
///
///     absent --start--> starting --greeted--> initializing --ready--> working
///     any of these --ended--> absent, and `spawn` again; after `tries` starts in a row that failed: `give_up`
///     any --stop--> stopping --ended--> absent for good
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class worker_lifecycle {
public:
  /// How far a worker is.
  enum class state {
    absent,        ///< no process
    starting,      ///< executed, has not said anything yet; or to be, as soon as there are the means
    initializing,  ///< accepted, runs the initializer
    working,       ///< takes tasks
    stopping       ///< told to leave, which it hears when it works; nobody takes its place
  };

  /// What is to be done.
  enum class action {
    none,    ///< nothing
    spawn,   ///< start a process
    kill,    ///< kill the process there is
    give_up  ///< the crew is broken: `failure()` says why
  };

  /// `tries`: how many starts in a row may fail. Requires: tries > 0.
  explicit worker_lifecycle(unsigned tries) noexcept : tries_(tries) {}

  /// There is to be a worker.
  action start();
  /// The process said hello and was accepted.
  action greeted();
  /// The process was refused, or its initializer failed: it is to go.
  action failed(error_info why);
  /// It takes tasks.
  action ready();
  /// It is about to be killed, or has failed to start, through no fault of its own: its end is not a failed start.
  void excuse() noexcept { excused_ = state_ != state::absent; }
  /// Nothing was heard for too long after the start.
  action timed_out();
  /// The process lives, and has closed its control socket: it can take no task any more.
  action deserted();
  /// The process is gone. `words` go with the error, if that was a failed start.
  action ended(const exit_status& how, const last_words& words = {});
  /// It shall go and nobody take its place.
  action stop();

  /// How far it is.
  [[nodiscard]] state now() const noexcept { return state_; }
  /// How many starts have failed, in a row.
  [[nodiscard]] unsigned failures() const noexcept { return failures_; }
  /// Whether excuse() was called for this process.
  [[nodiscard]] bool is_excused() const noexcept { return excused_; }
  /// Whether this start has failed, as far as is known.
  [[nodiscard]] bool has_failed() const noexcept { return failure_.has_value(); }
  /// Why the last start failed. Requires: one did.
  [[nodiscard]] const error_info& failure() const noexcept;

private:
  action start_again_or_give_up();

  const unsigned tries_;
  state state_ = state::absent;
  bool listens_ = false;  // it has become ready
  bool excused_ = false;
  unsigned failures_ = 0;  // starts in a row
  std::optional<error_info> failure_;
};

}  // namespace muster
