// SPDX-License-Identifier: BSL-1.0
// What a device does for memory that other processes have too.
#include <memory>
#include <new>
#include <utility>

#include <muster/base/detail/kept_for_next_task.hpp>
#include <muster/base/error.hpp>
#include <muster/cuda/cuda_device.hpp>

#include "cuda_devices.hpp"
#include "device_share.hpp"
#include "sharing_table.hpp"

namespace muster {

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

void cuda_device::keep_mapped(const std::shared_ptr<const detail::imported_extent>& which) {
  sharing_->keep_mapped(which);
  detail::kept_for_next_task::note([]() noexcept { detail::cuda_devices::of_program().drop_kept(); });
}

std::shared_ptr<const detail::imported_extent> cuda_device::kept_mapping(std::uint64_t name) const {
  return sharing_->kept_mapping(name);
}

void cuda_device::drop_kept() noexcept { sharing_->drop_kept(); }

// Once the device has done what it was given: after that the owner may use the memory again. What a task was lent goes
// when the device is waited for, at the task's end. For all else the driver calls back, on a thread of its own, where
// its functions must not be called (these blocks are the host's), and which takes it longer than most kernels take.
void cuda_device::let_go_later(std::unique_ptr<detail::left_blocks> what, bool at_end_of_task) noexcept {
  if (at_end_of_task) {
    detail::cuda_devices::note_pending();  // also of a task that was lent it earlier
    sharing_->leave(std::move(what));
    return;
  }
  const auto let_go = [](void* data) { delete static_cast<detail::left_blocks*>(data); };
  try {
    const scope current(*this);
    if (compute_->is_idle()) return;
    driver_->stream_host_function(compute_->handle(), let_go, what.get());
    static_cast<void>(what.release());  // NOLINT(bugprone-unused-return-value): let_go deletes it
  } catch (const error& failure) {
    // A device that is lost does nothing any more, so that they go now. Whatever else failed says nothing of what it
    // still does: they go when this process does.
    if (failure.code() != errc::device_lost) static_cast<void>(what.release());  // NOLINT(bugprone-unused-return-value)
  } catch (const std::bad_alloc&) {                                              // while that was to be said
    static_cast<void>(what.release());  // NOLINT(bugprone-unused-return-value): as above
  }
}

void cuda_device::promise(const shared_block& anchor) const { sharing_->watch().watch(*compute_, anchor); }

void cuda_device::note_awaited(const shared_block& anchor, const detail::device_promise& what) {
  sharing_->awaited().add(anchor, what);
}

void cuda_device::forget_awaited(const shared_block& anchor, std::uint64_t count) {
  sharing_->awaited().forget(anchor, count);
}

void cuda_device::require_awaited() { sharing_->awaited().require_all(); }

void cuda_device::collect() {
  for (const auto& each : sharing_->take_free()) heap_->release(each);
  sharing_->drop_closed();
}

}  // namespace muster
