// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace muster {

/// Whether this source is compiled for the address, thread or memory sanitizer, whose own memory and signal handlers
/// are in the way of limits and handlers of ours. GCC and Clang each say so in their own way.
///
/// Thread safety: a constant.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace muster
