// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <muster/device/tensor.hpp>

#include "call_frame.hpp"

namespace muster::detail {

// What a call reads must not lie where it writes, unless it is in place. Of one rank's tensors these functions tell in
// the rank's preparation of its call, so that all ranks refuse it; of different ranks' after the exchange.

/// Throws errc::invalid_argument, with both ranges, unless `out` is `in`, or they do not overlap, and `out` can be one.
/// Cost: where both are one object, or of different memory, and `out` is contiguous, some loads.
void require_apart(const char* operation, const tensor& in, const tensor& out);

/// Throws errc::invalid_argument where `out` is read-only, or two of its elements lie in one place.
void require_output(const char* operation, const tensor& out);
/// The same of several tensors together, but one may be there several times. Returns a fingerprint of which these are,
/// which must be the same on all ranks: then what is written twice is the same.
/// Cost: as much as sorting them, where they do not lie between one another.
[[nodiscard]] std::uint64_t require_distinct(const char* operation, std::span<const tensor> out);

/// Where a part that is some rows of a whole begins in it, as it goes to the other ranks; `apart` where they do not
/// overlap.
constexpr std::uint64_t apart = UINT64_MAX;

/// For calls in which one tensor may be this rank's rows of the other: the first of `part`'s elements among those of
/// `whole`, or apart. Throws errc::invalid_argument, with both ranges, where they overlap otherwise, and where `out`,
/// which is one of them, can be no output.
[[nodiscard]] std::uint64_t place_of_rows(const char* operation, const tensor& part, const tensor& whole,
                                          const tensor& out);

/// The rank's part, which is `count` elements long, begins with element `found` of its whole, and its own begin with
/// `own`: refuses the call on all ranks.
[[noreturn]] void refuse_rows(const call_frame& frame, std::size_t rank, std::uint64_t found, std::uint64_t own,
                              std::uint64_t count);

/// Refuses the call on all ranks where a rank's part is not its own rows of the whole. `extra`: which has what
/// place_of_rows() said. `count(rank)`: elements of a rank's part.
template <class Count>
void require_own_rows(const call_frame& frame, std::size_t extra, Count count) {
  std::uint64_t own = 0;
  for (std::size_t rank = 0; rank < frame.size(); ++rank) {
    const auto found = frame.extra(rank, extra);
    if (found != apart && found != own) refuse_rows(frame, rank, found, own, count(rank));
    own += count(rank);
  }
}

/// Bytes that a rank reads or writes where they are.
struct placed_bytes {
  std::uint64_t block = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t rank = 0;
  bool is_written = false;
};

/// Refuses the call on all ranks where bytes that one rank's call writes are another rank's too. Sorts them.
void require_apart(const call_frame& frame, std::span<placed_bytes> all);

}  // namespace muster::detail
