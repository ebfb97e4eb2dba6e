// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <muster/params/store_key.hpp>

namespace muster::detail {

/// What a tensor of a file is in a store. A file's metadata has, under the tensor's name, a line of fields
/// (docs/formats/store.md); a file of another library has none, and its tensors are values under their names.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct store_file_entry {
  /// Larger ones are no version of a store, and no step.
  static constexpr std::uint64_t most_version = std::uint64_t{1} << 48U;

  store_key key;
  std::uint64_t version = 0;             ///< 0: not said
  std::optional<std::uint64_t> type{};   ///< fingerprint of a value that is no tensor: its bytes are in the file
  std::optional<std::uint64_t> state{};  ///< it is not the value, but that state of its rule
  std::string rule{};                    ///< of the value's states
  std::uint64_t step = 0;                ///< how often that has been applied

  /// What the tensor is called: the key's text where that is of printable ASCII, or something that can be read.
  [[nodiscard]] std::string name() const;
  /// The line of fields, of a tensor that is called so.
  [[nodiscard]] std::string fields(std::string_view name) const;
  /// Nothing for a line that cannot be one.
  [[nodiscard]] static std::optional<store_file_entry> parse(std::string_view name, std::string_view fields);

  friend bool operator==(const store_file_entry&, const store_file_entry&) = default;
};

}  // namespace muster::detail
