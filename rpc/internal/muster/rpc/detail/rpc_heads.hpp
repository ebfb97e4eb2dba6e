// SPDX-License-Identifier: BSL-1.0
#pragma once

// What stands before the frame of a request and of a reply. Layout: docs/formats/rpc.md.
//
// Thread safety: values; distinct objects: safe. Shared objects: safe while nobody assigns.

#include <cstddef>
#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// What a request asks for.
enum class request_kind : std::uint8_t {
  function,         ///< `target`: the token of what decodes, runs and replies
  service,          ///< `object`: the service; `target`: fingerprint of its arguments and result
  method,           ///< `object`: the value; `target`: as of a function
  make,             ///< `object`: the value's number to be; `target`: as of a function; its cell is the first block
  make_by_service,  ///< the same; `target`: as of a service, whose number is before the arguments
  look,             ///< the holders of a value may have let go of it; there is no reply
  retire,           ///< of the program to an actor, `object`: it is to leave, behind its calls; there is no reply
  nudge             ///< nothing: the thread that waits looks anew
};

inline constexpr std::uint8_t concurrent_call = 1;  ///< request_head::flags: not in a line with others
inline constexpr std::uint8_t copied_result = 2;    ///< what of it lies in shared memory is copied

[[nodiscard]] constexpr bool makes_a_value(request_kind kind) noexcept {
  return kind == request_kind::make || kind == request_kind::make_by_service;
}

struct request_head {
  std::uint64_t target = 0;
  std::uint64_t object = 0;
  std::int64_t until = 0;  ///< nanoseconds of clock; 0: no deadline
  std::uint64_t chain = 0;
  std::uint32_t slot = 0;  ///< of the caller's call word
  std::uint32_t generation = 0;
  std::uint32_t incarnation = 0;  ///< of the member that it is for
  std::uint16_t caller = 0;
  request_kind kind = request_kind::nudge;
  std::uint8_t flags = 0;
};
static_assert(sizeof(request_head) == 48);

/// How many bytes are before the arguments.
[[nodiscard]] constexpr std::size_t bytes_before_arguments(request_kind kind) noexcept {
  return sizeof(request_head) + (kind == request_kind::make_by_service ? sizeof(std::uint64_t) : 0);
}

/// How a call ended at the member that served it.
enum class reply_kind : std::uint32_t {
  value,  ///< a frame of the result
  error,  ///< a frame of an error_info
  lost,   ///< it has not begun: the member has left
  nudge,  ///< of no call: the thread that waits looks anew
  look    ///< the same: a member has left, maybe without an answer to what had not begun
};

struct reply_head {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  reply_kind kind = reply_kind::nudge;
  std::uint32_t unused = 0;
};
static_assert(sizeof(reply_head) == 16);

}  // namespace muster::detail
