// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/serialize/archive.hpp>

namespace muster::detail {

/// A variable of a world, as caller and ranks know it: two tensors for each rank, of which one is live and the other is
/// where a call puts what the variable is to be. Which one is live only the caller knows, and says with each call; so a
/// call counts, for all variables and ranks at once, when he changes his mind, and a rank that dies takes nothing with
/// it: the memory is the caller's.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct rank_variable {
  std::string name;
  bool is_scattered = false;                  ///< each rank has rows of its own
  std::vector<std::array<tensor, 2>> copies;  ///< by rank; of what rules remember, one for all

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, is_scattered, copies);
  }
};

/// By their numbers.
using variable_table = std::unordered_map<std::uint32_t, rank_variable>;

}  // namespace muster::detail
