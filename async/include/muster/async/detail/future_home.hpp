// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

#include <muster/base/log.hpp>

namespace boost::asio {
class io_context;
}

namespace muster::detail {

class callback_executor;
class task_thread;
class waiting_calls;

/// What futures need of where they come from, a pool mostly, whatever it runs tasks on: where their callbacks run, and
/// which calls wait for their arguments. A future that outlives its pool keeps it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class future_home {
public:
  future_home(const future_home&) = delete;
  future_home& operator=(const future_home&) = delete;

  /// Of the library's own steps from future to future, which go on whatever the program's callbacks wait for, and
  /// whether or not it runs its loop.
  [[nodiscard]] callback_executor& steps() const noexcept;
  [[nodiscard]] const std::shared_ptr<callback_executor>& shared_steps() const noexcept;
  /// Of the program's functions: a thread, the program's loop, or the thread of a worker's task.
  [[nodiscard]] callback_executor& callbacks() const noexcept;
  [[nodiscard]] const std::shared_ptr<callback_executor>& shared_callbacks() const noexcept;
  [[nodiscard]] waiting_calls& waiting() const noexcept;
  /// The thread of a worker's task, where that is what runs callbacks and notices ends; else nullptr.
  [[nodiscard]] virtual task_thread* only_thread() noexcept { return nullptr; }

  /// An operation on a loop of the program's waits for an end, from now until it was told of it.
  virtual void begin_listening() noexcept {}
  virtual void end_listening() noexcept {}
  /// Both, as long as what is returned exists; nothing where there is no loop.
  [[nodiscard]] virtual std::shared_ptr<void> listen() { return nullptr; }

  /// Whether this is the process to which threads and workers belong.
  [[nodiscard]] bool is_here() const noexcept;
  /// Throws errc::forked in a forked child.
  void require_here() const;
  /// As callback_executor::stop, of both.
  void stop_callbacks() const;

protected:
  /// `loop`: where callbacks run; nullptr: on a thread of its own.
  explicit future_home(const log_sink& log, boost::asio::io_context* loop = nullptr);
  /// `what` it is, for errors in a forked child: "a group".
  future_home(const log_sink& log, const char* what);
  /// Callbacks and steps run where that says.
  explicit future_home(const std::shared_ptr<callback_executor>& everything);
  ~future_home();

private:
  struct parts;
  const std::unique_ptr<parts> parts_;
};

}  // namespace muster::detail
