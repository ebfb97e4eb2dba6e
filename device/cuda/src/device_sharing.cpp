// SPDX-License-Identifier: BSL-1.0
// What a device does for memory that other processes have too.
#include <utility>

#include <muster/base/error.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/memory/domain.hpp>

#include "device_share.hpp"
#include "sharing_table.hpp"

namespace muster {

namespace {

struct left_blocks {
  std::shared_ptr<domain> keeper;
  shared_block tag;
  shared_block anchor;
};

}  // namespace

std::shared_ptr<detail::exported_extent> cuda_device::export_extent(
    const std::shared_ptr<const detail::device_extent>& memory) {
  return sharing_->export_extent(*this, memory);
}

std::shared_ptr<const detail::device_extent> cuda_device::exported(std::uint64_t name) const {
  return sharing_->exported(name);
}

std::shared_ptr<const detail::imported_extent> cuda_device::import(const detail::device_tag& tag,
                                                                   const shared_block& anchor) {
  return sharing_->import(shared_from_this(), tag, anchor);
}

// Once the device has done what it was given: after that the owner may use the memory again. The driver calls it on a
// thread of its own, where its functions must not be called; these blocks are the host's.
void cuda_device::let_go_later(shared_block tag, shared_block anchor) noexcept {
  auto keeper = domain::of(tag) != nullptr ? domain::of(tag) : domain::entered();
  auto left = std::make_unique<left_blocks>(std::move(keeper), std::move(tag), std::move(anchor));
  const auto let_go = [](void* data) { delete static_cast<left_blocks*>(data); };
  try {
    const scope current(*this);
    driver_->stream_host_function(compute_->handle(), let_go, left.get());
    static_cast<void>(left.release());
  } catch (const error& failure) {
    // A device that is lost does nothing any more, so that they go now. Whatever else failed says nothing of what it
    // still does: they go when this process does.
    if (failure.code() != errc::device_lost) static_cast<void>(left.release());
  }
}

void cuda_device::collect() {
  for (const auto& each : sharing_->take_free()) heap_->release(each);
}

}  // namespace muster
