// SPDX-License-Identifier: BSL-1.0
#include "bools.hpp"

#include <cstdint>
#include <cstring>

namespace muster::detail {

void copy_bools(std::byte* to, const std::byte* from, std::size_t count) noexcept {
  std::memmove(to, from, count);
  for (std::size_t index = 0; index < count; ++index) to[index] = std::byte{to[index] != std::byte{0}};
}

unsigned greatest_byte(const std::byte* first, std::size_t count) noexcept {
  std::uint8_t greatest = 0;
  for (std::size_t index = 0; index < count; ++index) {
    const auto each = std::to_integer<std::uint8_t>(first[index]);
    greatest = each > greatest ? each : greatest;
  }
  return greatest;
}

}  // namespace muster::detail
