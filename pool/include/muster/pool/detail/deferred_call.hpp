// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include <boost/intrusive/slist.hpp>

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

  // Memory for Asio's operation, where the executor is a loop of the program's: nothing else is allocated at the end.
  struct loop_room {
    alignas(std::max_align_t) std::array<std::byte, 128> bytes;
    bool taken = false;
  };
  std::unique_ptr<loop_room> room_;
};

struct deferred_disposal {
  void operator()(deferred_call* call) const noexcept { call->dispose(); }
};
using deferred_ptr = std::unique_ptr<deferred_call, deferred_disposal>;

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

/// Deferred calls that it owns, first in, first out. Adding and removing one allocates nothing.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class deferred_list {
public:
  deferred_list() = default;
  deferred_list(const deferred_list&) = delete;
  deferred_list& operator=(const deferred_list&) = delete;
  ~deferred_list() {
    while (!empty()) static_cast<void>(pop_front());
  }

  [[nodiscard]] bool empty() const noexcept { return calls_.empty(); }
  void push_back(deferred_ptr call) noexcept { calls_.push_back(*call.release()); }
  [[nodiscard]] deferred_ptr pop_front() noexcept {
    deferred_ptr first(&calls_.front());
    calls_.pop_front();
    return first;
  }

private:
  boost::intrusive::slist<deferred_call, boost::intrusive::cache_last<true>,
                          boost::intrusive::constant_time_size<false>>
      calls_;
};

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
