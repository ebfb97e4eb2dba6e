// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <muster/device/dtype.hpp>
#include <muster/device/tensor_shape.hpp>

namespace muster::detail {

/// Where the elements of one tensor of a file lie, counted from behind the header.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct safetensors_entry {
  std::string name;
  dtype type = dtype::f32;
  tensor_shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// What a file begins with: the length of its header in 8 bytes, and that, in JSON.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct safetensors_header {
  static constexpr std::uint64_t length_bytes = 8;
  static constexpr std::uint64_t most_bytes = 100'000'000;  ///< what the reference takes

  std::vector<safetensors_entry> entries;  ///< in the order in which they lie
  std::vector<std::pair<std::string, std::string>> metadata;

  /// Its bytes, with the length, a multiple of 8. Throws errc::invalid_argument, with the path, for what cannot be one.
  [[nodiscard]] std::string encode(std::string_view path) const;
  /// Reads the JSON. Throws errc::corrupted, with the path, unless the entries fill `bytes` bytes without gaps.
  [[nodiscard]] static safetensors_header decode(std::string_view json, std::uint64_t bytes, std::string_view path);
};

/// Throws errc::corrupted: that file is not what it is to be.
[[noreturn]] void refuse_file(std::string_view path, const std::string& why);

}  // namespace muster::detail
