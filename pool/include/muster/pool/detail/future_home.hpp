// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include <muster/base/fork_count.hpp>
#include <muster/pool/detail/callback_executor.hpp>
#include <muster/pool/detail/waiting_calls.hpp>

namespace muster::detail {

/// What futures need of the pool that they come from, whatever it runs tasks on: where their callbacks run, and which
/// calls wait for their arguments. A future that outlives its pool keeps it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class future_home {
public:
  future_home(const future_home&) = delete;
  future_home& operator=(const future_home&) = delete;

  /// Of the library's own steps from future to future, which go on whatever the program's callbacks wait for, and
  /// whether or not it runs its loop.
  [[nodiscard]] callback_executor& steps() noexcept { return *steps_; }
  /// Of the program's functions: a thread, or the program's loop.
  [[nodiscard]] callback_executor& callbacks() noexcept { return *callbacks_; }
  [[nodiscard]] const std::shared_ptr<callback_executor>& shared_callbacks() const noexcept { return callbacks_; }
  [[nodiscard]] const std::shared_ptr<callback_executor>& shared_steps() const noexcept { return steps_; }
  [[nodiscard]] waiting_calls& waiting() noexcept { return waiting_; }
  /// Until what is returned is given up a loop of the program's, if the pool has one, waits for ends.
  [[nodiscard]] virtual std::shared_ptr<void> listen() { return nullptr; }
  /// Whether this is the process to which threads and workers belong.
  [[nodiscard]] bool is_here() const noexcept { return made_in_.is_here(); }
  /// Throws errc::forked in a forked child.
  void require_here() const { made_in_.require_here("a pool"); }
  /// As callback_executor::stop, of both.
  void stop_callbacks() {
    callbacks_->stop();
    steps_->stop();
  }

protected:
  /// `loop`: where callbacks run; nullptr: on a thread of the pool's own.
  explicit future_home(const log_sink& log, boost::asio::io_context* loop = nullptr)
      : steps_(std::make_shared<callback_executor>(log)),
        callbacks_(loop != nullptr ? std::make_shared<callback_executor>(log, *loop)
                                   : std::make_shared<callback_executor>(log)) {}
  ~future_home() = default;

private:
  const process_mark made_in_;
  const std::shared_ptr<callback_executor> steps_;
  const std::shared_ptr<callback_executor> callbacks_;
  waiting_calls waiting_;
};

}  // namespace muster::detail
