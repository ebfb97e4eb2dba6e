// SPDX-License-Identifier: BSL-1.0
#include <muster/device/dtype.hpp>

#include <array>
#include <ostream>

namespace muster {

namespace {

struct known_dtype {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<known_dtype, dtype_count> known = {{{"bool", 1},
                                                         {"i8", 1},
                                                         {"i16", 2},
                                                         {"i32", 4},
                                                         {"i64", 8},
                                                         {"u8", 1},
                                                         {"u16", 2},
                                                         {"u32", 4},
                                                         {"u64", 8},
                                                         {"f16", 2},
                                                         {"bf16", 2},
                                                         {"f32", 4},
                                                         {"f64", 8},
                                                         {"c64", 8},
                                                         {"c128", 16}}};

}  // namespace

std::size_t dtype_size(dtype type) noexcept { return known[static_cast<std::size_t>(type)].bytes; }

std::string_view dtype_name(dtype type) noexcept {
  const auto number = static_cast<std::size_t>(type);
  return number < known.size() ? known[number].name : "unknown";
}

std::ostream& operator<<(std::ostream& out, dtype type) { return out << dtype_name(type); }

}  // namespace muster
