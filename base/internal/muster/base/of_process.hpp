// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <memory>

#include <muster/base/detail/fork_count.hpp>

namespace muster {

/// The one `T` of each process, made when it is first asked for: for what is found without being passed in, of which
/// there can be no other. A forked child gets one of its own, since a thread that it does not have may have been at
/// work on its parent's, and have had its lock.
///
/// Lifetime: that of the process; a `T` is never destroyed. A child keeps its parent's as it was, which leaves to the
/// parent what is in it, and has nobody take it for lost. Requires: the object itself is static.
/// Thread safety: safe; the `T` needs its own discipline.
template <class T>
class of_process {
public:
  constexpr of_process() noexcept = default;
  of_process(const of_process&) = delete;
  of_process& operator=(const of_process&) = delete;
  ~of_process() = default;

  [[nodiscard]] T& get() {
    auto* found = current_.load(std::memory_order_acquire);
    while (found == nullptr || !found->made_in.is_here()) {
      auto made = std::make_unique<one>(found);
      // Nothing is waited for: of two threads that make one, the other's goes.
      if (current_.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return made.release()->object;
    }
    return found->object;
  }

private:
  struct one {
    explicit one(const one* from) noexcept : parents(from) {}

    const one* const parents;
    const process_mark made_in;
    T object{};
  };

  // Release, acquire: whoever finds one sees it made.
  std::atomic<one*> current_ = nullptr;
};

}  // namespace muster
