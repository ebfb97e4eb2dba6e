// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include <boost/intrusive/slist.hpp>

#include <muster/pool/detail/owning_list.hpp>
#include <muster/process/detail/handler_room.hpp>

namespace muster::detail {

/// A call that a callback_executor makes later, on its own thread.
///
/// It is allocated when a callback is registered, with everything that the callback captured. From then on it is moved
/// by pointer only: passing it on allocates nothing, copies nothing, and destroys nothing that the program has given.
/// The executor's thread destroys it.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class deferred_call : public boost::intrusive::slist_base_hook<> {
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
  std::unique_ptr<handler_room<128>> room_;
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

/// Learns once that something has ended, from the thread that observes the end: often the supervisor.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class end_notice {
public:
  end_notice() = default;
  end_notice(const end_notice&) = delete;
  end_notice& operator=(const end_notice&) = delete;
  /// Without a tell() before: whatever was to end is not going to say so.
  virtual ~end_notice() = default;

  /// Passes the news on. Runs no code of the program, and destroys nothing that the program has given.
  static void tell(std::unique_ptr<end_notice> self) noexcept {
    if (self != nullptr) self.release()->tell();
  }

private:
  /// Owns itself from now on.
  virtual void tell() noexcept = 0;
};

}  // namespace muster::detail
