// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a rank that has failed tells the caller.

#include <cstdint>
#include <vector>

#include <muster/parallel/detail/failure_order.hpp>
#include <muster/parallel/detail/world_memory.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

struct failure_note {
  error_info why;
  std::vector<std::uint32_t> caused_by{};  ///< ranks that its error names
  std::vector<std::uint32_t> ended{};      ///< ranks that are not known to have been alive when it failed

  [[nodiscard]] static failure_note of(error_info why, const rank_set& caused_by, const rank_set& ended);
  /// Of whatever somebody has written there.
  [[nodiscard]] static rank_set set_of(const std::vector<std::uint32_t>& ranks) noexcept;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(why, caused_by, ended);
  }
};

/// The ranks without which a group could not go on, if the exception that is being handled, or one that it is nested
/// around, says so. Called inside a catch block.
[[nodiscard]] rank_set ranks_named_by_current_exception(const world_memory& memory) noexcept;

}  // namespace muster::detail
