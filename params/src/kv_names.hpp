// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>

#include <muster/base/text.hpp>
#include <muster/params/store_key.hpp>

namespace muster::detail {

/// What those that take part are called in their group.
[[nodiscard]] inline std::string member_of_rank(std::size_t rank) { return text("rank ", rank); }
/// What an owner's part is published as.
[[nodiscard]] inline std::string owner_of_rank(std::size_t rank) { return text("owner ", rank); }

/// Under which keys of the store is what belongs to a value: its owner, its failed rounds, the states of its rule. They
/// begin with a byte that no key of a program does (require_key()).
inline constexpr char own_byte = '\1';
[[nodiscard]] inline store_key key_beside(const store_key& key, char what) {
  return std::string{own_byte, what} + (key.is_number() ? text('#', key.number()) : text('\'', key.text()));
}

}  // namespace muster::detail
