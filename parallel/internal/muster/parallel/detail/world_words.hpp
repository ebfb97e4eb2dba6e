// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the caller of a world and its ranks say to one another, in one word each: `{epoch:56, what:8}`. An epoch is a
// call. Only the caller writes the command, and only a rank its answer; so no two write the same word.
//
//     caller: run(e) --all done(e)--> the call has ended, and what the ranks have written counts
//             run(e) --some failed(e), died, too late--> abort(e) --all others quiet--> it has not happened
//     rank:   sees run(e) -> computed(e), if ranks read one another's results -> done(e) or failed(e)
//             sees abort(e) before it is done -> dropped(e)
//
// Thread safety: values and pure functions; safe.

#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// What the caller wants.
enum class world_order : std::uint8_t {
  none = 0,   ///< nothing yet
  run = 1,    ///< take part in the call of this epoch
  abort = 2,  ///< leave it: it will not count
  close = 3,  ///< leave the world
  learn = 4,  ///< take in what there is to know, as at the beginning of a call, and no more
  tend = 5,   ///< the same, and then make room for variables on devices, or bring them to the host
};

/// How far a rank is.
enum class rank_phase : std::uint8_t {
  absent = 0,    ///< nobody is that rank yet
  ready = 1,     ///< there, and has not taken part in anything
  computed = 2,  ///< its share is computed, and may be read by other ranks; it will read theirs
  done = 3,
  failed = 4,   ///< it threw: see its reply
  dropped = 5,  ///< it has seen that the call was aborted
};

/// Whether a rank in this phase of an epoch touches nothing of that call any more.
[[nodiscard]] constexpr bool is_quiet(rank_phase phase) noexcept {
  return phase == rank_phase::done || phase == rank_phase::failed || phase == rank_phase::dropped;
}

template <class What>
struct epoch_word {
  std::uint64_t epoch = 0;
  What what{};

  [[nodiscard]] static constexpr epoch_word unpack(std::uint64_t word) noexcept {
    return {.epoch = word >> 8U, .what = static_cast<What>(word & 0xffU)};
  }
  [[nodiscard]] constexpr std::uint64_t pack() const noexcept { return epoch << 8U | static_cast<std::uint8_t>(what); }
  [[nodiscard]] friend constexpr bool operator==(const epoch_word&, const epoch_word&) noexcept = default;
};

using command_word = epoch_word<world_order>;
using answer_word = epoch_word<rank_phase>;

}  // namespace muster::detail
