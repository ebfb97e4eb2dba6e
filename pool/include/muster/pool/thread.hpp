// SPDX-License-Identifier: BSL-1.0
#pragma once

// A function in a thread of its own, whose exceptions are not lost.
//
//     muster::thread reader([&] { read(file); });
//     reader.join();
//     reader.watch();   // throws what read threw

#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>

namespace muster {

namespace detail {

class thread_state;

/// Runs in the new thread: calls `run`, notes what it throws.
using thread_main = std::function<void(const std::stop_token&)>;

}  // namespace detail

/// Runs `f(args...)`, or `f(std::stop_token, args...)` where that is possible, in a thread of its own.
///
/// As std::jthread, with three differences: an exception does not end the program but is kept for watch(), waiting can
/// have a deadline, and joining twice is no mistake.
/// Thread safety: distinct objects: safe. Shared objects: safe, except destruction and assignment.
/// Process safety: belongs to the process that made it; in a forked child its destructor does nothing.
class thread {
public:
  /// Callable and arguments are copied or moved into the thread.
  /// Throws std::system_error (EAGAIN) when no thread can be started.
  template <class F, class... Args>
    requires(!std::is_same_v<std::decay_t<F>, thread>)
  explicit thread(F&& f, Args&&... args)
      : thread(detail::thread_main(make_main(std::forward<F>(f), std::forward<Args>(args)...))) {}

  /// Takes over the thread. Calls of `other` throw errc::invalid_argument afterwards.
  thread(thread&& other) noexcept;
  /// As destruction, of what this one was.
  thread& operator=(thread&& other) noexcept;
  /// Asks the function to stop, and waits for its end, for however long that takes: a thread cannot be killed. What it
  /// threw, and nobody has asked for, is lost. Destroyed by the thread itself (its function drops the last owner of
  /// this object) it asks, and does not wait: the thread goes on to its end, for which nobody waits any more, not even
  /// the end of the program.
  ~thread();

  /// Waits until the thread has ended. Throws errc::invalid_argument when called by the thread itself.
  /// Unblocked by: the end of the function.
  void join() const { static_cast<void>(join_until(deadline::never())); }
  /// Waits for a limited time. Returns false when the time passed first.
  ///@{
  template <class Rep, class Period>
  [[nodiscard]] bool join_for(std::chrono::duration<Rep, Period> time) const {
    return join_until(deadline::after(time));
  }
  [[nodiscard]] bool join_until(deadline until) const;
  ///@}

  /// Whether the function runs.
  [[nodiscard]] bool is_alive() const;

  /// Throws what the function threw, if it did; the same exception at each call. Returns when it still runs, or has
  /// returned. Never blocks.
  void watch() const;

  /// Sets the stop_token that the function got, if it takes one. False when it was set already.
  bool request_stop() const;

private:
  explicit thread(detail::thread_main run);

  // std::function wants copies, but arguments may be of types that have none.
  template <class F, class... Args>
  static detail::thread_main make_main(F&& f, Args&&... args) {
    auto call = std::make_shared<std::tuple<std::decay_t<F>, std::decay_t<Args>...>>(std::forward<F>(f),
                                                                                     std::forward<Args>(args)...);
    return [call](const std::stop_token& stop) {
      std::apply(
          [&stop](auto& callable, auto&... values) {
            if constexpr (std::is_invocable_v<std::decay_t<F>, std::stop_token, std::decay_t<Args>...>) {
              std::invoke(std::move(callable), stop, std::move(values)...);
            } else {
              static_cast<void>(stop);
              std::invoke(std::move(callable), std::move(values)...);
            }
          },
          *call);
    };
  }
  [[nodiscard]] detail::thread_state& self() const;

  std::shared_ptr<detail::thread_state> state_;  // shared with the thread, which may outlive this in a forked child
};

}  // namespace muster
