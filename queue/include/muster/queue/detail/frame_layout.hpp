// SPDX-License-Identifier: BSL-1.0
#pragma once

// How much of a call lies in shared memory beside its slot's word.
//
// Thread safety: constants only.

#include <cstddef>
#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

/// How much of a call's frame fits into its slot, and of a reply.
inline constexpr std::size_t inline_argument_bytes = 48;
inline constexpr std::size_t inline_reply_bytes = 56;
inline constexpr std::size_t small_reply_bytes = 8;

/// A chunk's reply line ends with the handles of so many blocks that go with it; 0: none. They are there while the
/// chunk runs too, so that they are found if its worker dies.
inline constexpr std::size_t attached_blocks = 2;
inline constexpr std::size_t attached_handles_offset = inline_reply_bytes - attached_blocks * sizeof(std::uint64_t);

}  // namespace muster
