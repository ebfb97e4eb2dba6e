// SPDX-License-Identifier: BSL-1.0
#include "cuda_block.hpp"

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>
#include <muster/serialize/frame_stream.hpp>

#include "device_share.hpp"

namespace muster::detail {

cuda_block::~cuda_block() {
  const scoped_lock lock(mutex_);
  of_->give_back(piece_, std::move(tag_));
}

void cuda_block::share() const {
  if (tag_) return;
  extent_ = of_->export_extent(piece_.extent);
  tag_ = extent_->tag_of(*of_, piece_, bytes_);
}

// The mark is made when the reference is written, not when its bytes are counted.
void cuda_block::write_to(frame_writer& out) const {
  const scoped_lock lock(mutex_);
  const cuda_device::scope current(*of_);
  share();
  out.attach(tag_);
  out.attach(extent_->anchor());
  const auto count = out.only_counts() ? 0 : extent_->mark(*of_);
  out.write(&count, sizeof count);
}

foreign_block::~foreign_block() {
  try {
    of_->synchronize();
  } catch (const error&) {
    // The device is lost, and does nothing any more.
  }
}

void foreign_block::write_to(frame_writer& /*out*/) const { MUSTER_ASSERT(is_shareable()); }

}  // namespace muster::detail
