// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <muster/device/tensor.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

namespace frames {

/// One picture of the ring under way: its memory goes from process to process, its bytes stay where they are.
struct frame {
  muster::tensor pixels;
  std::size_t number = 0;
  std::uint64_t checksum = 0;  ///< of the pixels, by whoever wrote them last
  int writer = 0;              ///< process

  template <class Archive>
  void serialize(Archive& archive) {
    archive(pixels, number, checksum, writer);
  }
};

using frame_queue = muster::shared_queue<frame>;

[[nodiscard]] std::uint64_t checksum_of(const muster::tensor& pixels);

/// The producer's function: takes frames out of `empty`, draws `picture` into them, each time a little further to the
/// left, and pushes them on; closes `drawn` after `count`.
void draw_frames(const muster::tensor& picture, std::size_t count, const frame_queue& empty, const frame_queue& drawn);

/// A worker's task: takes drawn frames, filters them where they lie, and pushes them on, until there are no more.
/// Returns how many. A frame that a worker had when it was killed is filtered by another.
std::size_t filter_frames(const frame_queue& drawn, const frame_queue& filtered);

}  // namespace frames
