// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <muster/base/text.hpp>
#include <muster/params/store_key.hpp>

namespace muster::detail {

/// What those that take part are called in their group.
[[nodiscard]] inline std::string member_of_rank(std::size_t rank) { return text("rank ", rank); }
[[nodiscard]] inline std::size_t rank_of_member(std::string_view name) {
  std::size_t rank = SIZE_MAX;
  const auto digits = name.substr(name.find(' ') + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return rank;
}
/// What an owner's part is published as.
[[nodiscard]] inline std::string owner_of_rank(std::size_t rank) { return text("owner ", rank); }

/// Under which keys of the store is what belongs to a value: 'o' its owner, 'c' its kv_record, '0' and '1' the states
/// of its rule; and to the whole: 'r' the rule, 'u' which updater, 'b' with a rank how often that has come to a
/// barrier. They begin with a byte that no key of a program does (require_key()).
inline constexpr char own_byte = '\1';
inline constexpr std::size_t keys_of_a_value = 5;
[[nodiscard]] inline store_key key_of_all(char what, std::string_view more = {}) {
  return std::string{own_byte, what} + std::string(more);
}
[[nodiscard]] inline store_key key_beside(const store_key& key, char what) {
  return std::string{own_byte, what} + (key.is_number() ? text('#', key.number()) : text('\'', key.text()));
}

/// That of a state of the value's rule. Requires: a rule has that many.
[[nodiscard]] inline store_key key_of_state(const store_key& key, std::size_t state) {
  return key_beside(key, static_cast<char>('0' + state));
}

}  // namespace muster::detail
