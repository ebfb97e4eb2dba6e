// SPDX-License-Identifier: BSL-1.0
#pragma once

// Decoders of what has a block beside its frame, or is one. Of an input the first byte says how many bytes are the
// frame; what follows is the content of the block, whose name is 1.

#include <cstddef>
#include <span>

namespace muster::fuzz {

/// All elements of what comes out lie within its memory.
void decode_tensor(std::span<const std::byte> bytes);
/// An object of 16 bytes and type 7, which lies within the image.
void decode_shared_image(std::span<const std::byte> bytes);
/// No frame: all of it is the block. All cells of the queue lie within it.
void decode_queue(std::span<const std::byte> bytes);

}  // namespace muster::fuzz
