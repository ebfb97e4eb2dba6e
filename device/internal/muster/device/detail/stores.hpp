// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::detail {

/// How results go to memory.
enum class stores : std::uint8_t {
  normal,     ///< by way of the caches: for what is read again soon
  streaming,  ///< past them, without reading first what will be overwritten: for results much larger than the caches
};

/// From about there on a result's end pushes its begin out of the caches before anybody reads it.
inline constexpr std::size_t streaming_bytes = std::size_t{4} << 20U;

/// For a result of that size.
///
/// Thread safety: safe.
[[nodiscard]] constexpr stores stores_for(std::size_t bytes) noexcept {
  return bytes >= streaming_bytes ? stores::streaming : stores::normal;
}

}  // namespace muster::detail
