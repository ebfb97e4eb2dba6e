// SPDX-License-Identifier: BSL-1.0
#pragma once

// Shared blocks travel beside a frame, not in it: the archive hands them to whoever carries the frame, and writes the
// names that it gets for them. What they are to a value (the elements of a tensor, say) is the value's own affair.

#include <cstdint>

#include <muster/memory/detail/shared_block.hpp>

namespace muster {

/// Where the blocks of an encoded value go.
///
/// Thread safety: as the implementation.
class attachment_sink {
public:
  /// Takes care that the block is there until the frame has been decoded; returns the name to write into it.
  /// Throws errc::out_of_memory when there is no way to hold it.
  [[nodiscard]] virtual std::uint64_t attach(const shared_block& what) = 0;

protected:
  ~attachment_sink() = default;
};

/// Where the blocks of a value that is decoded come from.
///
/// Thread safety: as the implementation.
class attachment_source {
public:
  /// The block of that name. Throws errc::corrupted when none came with the frame.
  [[nodiscard]] virtual shared_block take(std::uint64_t name) = 0;
  /// Whether whoever has sent the blocks keeps them until the task that they came with has ended.
  [[nodiscard]] virtual bool lends_for_task() const noexcept { return false; }

protected:
  ~attachment_source() = default;
};

}  // namespace muster
