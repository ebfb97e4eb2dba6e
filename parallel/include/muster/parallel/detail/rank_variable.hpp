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
/// it: the memory is the caller's. A rank knows of others' copies, and holds them, only if some function reduces values
/// of all ranks into the variable; else there are tensors without elements in their place.
///
/// In a world whose ranks all have devices there are two more for each rank, on its device. The rank has allocated
/// them, but the caller has references, so that they outlive it; which of those is live he knows too, and whether it is
/// the devices or the host that have what counts.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct rank_variable {
  std::string name;
  bool is_scattered = false;                  ///< each rank has rows of its own
  std::vector<std::array<tensor, 2>> copies;  ///< by rank; of what rules remember, one for all
  bool is_state = false;  ///< what a rule remembers: on a device, the elements that its rank updates
  std::vector<std::array<tensor, 2>> on_device{};  ///< by rank; none where nobody has asked for them

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, is_scattered, copies, is_state, on_device);
  }
};

/// Which copies of a variable a call is about.
struct named_copy {
  std::uint8_t bits = 0;

  [[nodiscard]] constexpr unsigned here() const noexcept { return bits & 1U; }         ///< which of those on the host
  [[nodiscard]] constexpr unsigned there() const noexcept { return bits >> 1U & 1U; }  ///< which of those on devices
  [[nodiscard]] constexpr bool is_there() const noexcept { return (bits & 4U) != 0; }  ///< the call uses the latter
  [[nodiscard]] constexpr bool is_to_go() const noexcept {
    return (bits & 8U) != 0;
  }  ///< after copying the former there
  [[nodiscard]] constexpr bool is_alike() const noexcept { return (bits & 16U) != 0; }  ///< all ranks have the same
};
static_assert(sizeof(named_copy) == 1, "a frame has them as they are");

/// By their numbers.
using variable_table = std::unordered_map<std::uint32_t, rank_variable>;

}  // namespace muster::detail
