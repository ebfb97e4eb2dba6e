// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which rank of a call failed first, as a function without I/O. Ranks that throw count their failures in the world's
// memory; dead ranks cannot. So a rank that throws also says which ranks its error names, and which ranks' processes
// had ended by then: a death that it knew of came before, any other death came after.
//
// Thread safety: values and pure functions; safe.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <muster/parallel/detail/world_memory.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

using rank_set = std::bitset<world_shape::most_ranks>;

/// How one rank of a call failed.
struct call_failure {
  enum class kind : std::uint8_t {
    threw,
    died,
    late,    ///< the call's time was over
    killed,  ///< it did not answer: the caller has killed it
  };
  static constexpr std::uint64_t last = UINT64_MAX;

  std::size_t rank = 0;
  kind how = kind::threw;
  /// The order in which the world counted its failures; of a death, when it became known.
  std::uint64_t number = last;
  rank_set caused_by{};  ///< ranks that its error names
  rank_set ended{};      ///< ranks that are not known to have been alive then; of a death it means nothing
  error_info why{};
};

/// Sorts the failures of a call: a failure comes behind those that it is known to have come after, and otherwise by
/// number. Ranks that name each other come by number.
/// Cost: the square of their number, unless many name one another.
void sort_by_cause(std::vector<call_failure>& all);

}  // namespace muster::detail
