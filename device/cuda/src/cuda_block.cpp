// SPDX-License-Identifier: BSL-1.0
#include "cuda_block.hpp"

#include <utility>

#include <muster/base/assert.hpp>
#include <muster/serialize/detail/frame_stream.hpp>

#include "cuda_devices.hpp"
#include "device_share.hpp"

namespace muster::detail {

// In a forked child it is its parent's, and a thread that the child does not have may have the lock.
cuda_block::~cuda_block() {
  if (!of_->is_here()) return;
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

void cuda_block::note_copied() const noexcept {
  cuda_devices::of_program().note_copied(copy_cause::no_means, of_->where());
}

void cuda_block::open_to(const cuda_device& peer) const { piece_.extent->open_to(peer.handle(), of_->context()); }

foreign_block::~foreign_block() {
  if (!of_->is_here()) {
    leave_to_parent(std::move(keeper_));
    return;
  }
  of_->settle();
}

void foreign_block::note_copied() const noexcept {
  cuda_devices::of_program().note_copied(copy_cause::foreign, of_->where());
}

void foreign_block::write_to(frame_writer& /*out*/) const { MUSTER_ASSERT(is_shareable()); }

}  // namespace muster::detail
