// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/depth_guard.hpp>

#include <pthread.h>

#include <algorithm>
#include <cstdint>

#include <muster/base/error.hpp>

namespace muster::detail {

namespace {

// The thread sanitizer notes every call on a stack of its own, of 65536 calls, and does not look whether that is full.
#if defined(__SANITIZE_THREAD__)
constexpr std::uintptr_t most_of_stack = std::uintptr_t{4} << 20U;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr std::uintptr_t most_of_stack = std::uintptr_t{4} << 20U;
#else
constexpr std::uintptr_t most_of_stack = UINTPTR_MAX;
#endif
#else
constexpr std::uintptr_t most_of_stack = UINTPTR_MAX;
#endif

/// Where the calling thread's stack lies, or the part of it that may be used.
struct stack_bounds {
  std::uintptr_t lowest = 0;
  std::uintptr_t end = 0;

  static stack_bounds of_thread() {
    stack_bounds found;
    ::pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return found;
    void* lowest = nullptr;
    std::size_t bytes = 0;
    if (::pthread_attr_getstack(&attributes, &lowest, &bytes) == 0) {
      found.end = reinterpret_cast<std::uintptr_t>(lowest) + bytes;
      found.lowest = found.end - std::min<std::uintptr_t>(bytes, most_of_stack);
    }
    ::pthread_attr_destroy(&attributes);
    return found;
  }

  /// False also on a stack that the thread has switched to, of which nothing is known.
  [[nodiscard]] bool is_nearly_used_up(std::uintptr_t here) const {
    if (here < lowest || here >= end) return false;
    // For one level more, the functions of the program in it, and what unwinds the stack.
    constexpr std::uintptr_t most_reserve = std::uintptr_t{256} * 1024;
    return here - lowest < std::min(most_reserve, (end - lowest) / 4);
  }
};

}  // namespace

void require_stack_room() {
  thread_local const auto bounds = stack_bounds::of_thread();
  if (!bounds.is_nearly_used_up(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)))) return;
  throw error(errc::not_serializable,
              "the value is nested deeper than this thread's stack (" +
                  std::to_string((bounds.end - bounds.lowest) / 1024) +
                  " KiB) allows: send its parts in a container, or raise the limit (ulimit -s)");
}

}  // namespace muster::detail
