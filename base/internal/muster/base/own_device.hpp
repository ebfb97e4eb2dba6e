// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>

namespace muster::detail {

/// How a worker that is pinned to a device opens it and sees that it works, before it runs any code of the program's.
/// Noted by the library that knows devices of that kind, if the program is linked with one. State of the process, for
/// the reason that pending_work is.
///
/// Thread safety: note() before other threads run; the rest is safe.
class own_device {
public:
  using opener = void (*)();

  static void note(opener how) noexcept { noted.store(how, std::memory_order_relaxed); }
  /// Throws what the library says is wrong with the device; without a library it does nothing.
  static void open() {
    if (const auto how = noted.load(std::memory_order_relaxed)) how();
  }

private:
  static inline constinit std::atomic<opener> noted{nullptr};
};

}  // namespace muster::detail
