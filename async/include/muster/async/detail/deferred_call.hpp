// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include <muster/async/detail/owning_list.hpp>

namespace muster::detail {

struct loop_room;
struct loop_room_disposal {
  void operator()(loop_room* room) const noexcept;
};

/// A call that a callback_executor makes later, on its own thread.
///
/// It is allocated when a callback is registered, with everything that the callback captured. From then on it is moved
/// by pointer only: passing it on allocates nothing, copies nothing, and destroys nothing that the program has given.
/// The executor's thread destroys it.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class deferred_call : public list_link<deferred_call> {
public:
  deferred_call() = default;
  deferred_call(const deferred_call&) = delete;
  deferred_call& operator=(const deferred_call&) = delete;
  virtual ~deferred_call() = default;

  /// Makes the call, once. What it throws is logged by the executor.
  virtual void run() = 0;

private:
  friend class callback_executor;
  friend struct deferred_disposal;

  /// Drops the executor's ownership.
  virtual void dispose() noexcept { delete this; }

  // For Asio's operation, where the executor is a loop of the program's: nothing else is allocated at the end.
  std::unique_ptr<loop_room, loop_room_disposal> room_;
};

struct deferred_disposal {
  void operator()(deferred_call* call) const noexcept { call->dispose(); }
};
using deferred_ptr = std::unique_ptr<deferred_call, deferred_disposal>;
using deferred_list = owning_list<deferred_call, deferred_disposal>;

/// A deferred_call of a callable.
///
/// Thread safety: as deferred_call.
template <class F>
class deferred_function final : public deferred_call {
public:
  explicit deferred_function(F f) : f_(std::move(f)) {}
  void run() override { f_(); }

private:
  F f_;
};

template <class F>
[[nodiscard]] deferred_ptr defer(F f) {
  return deferred_ptr(new deferred_function<F>(std::move(f)));
}

}  // namespace muster::detail
