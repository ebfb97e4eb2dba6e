// SPDX-License-Identifier: BSL-1.0
#include <muster/device/detail/device_block.hpp>

#include <array>
#include <atomic>

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/copy_lane.hpp>

namespace muster {

namespace {

// One library of a kind per program, as there is one driver. Constant before anything runs, so that the order in which
// static objects are made does not matter.
constinit std::array<std::atomic<device_kind*>, 2> kinds{};

std::atomic<device_kind*>& entry_of(device::kind which) { return kinds.at(static_cast<std::size_t>(which)); }

}  // namespace

std::shared_ptr<void> device_operations::pin(const tensor& /*what*/) { return nullptr; }

std::unique_ptr<copy_lane> device_operations::make_copy_lane() { return nullptr; }

device_kind* find_kind_of(device which) noexcept { return entry_of(which.type()).load(std::memory_order_acquire); }

device_kind& kind_of(device which) {
  MUSTER_ASSERT(!which.is_cpu());
  auto* const found = find_kind_of(which);
  if (found != nullptr) return *found;
  throw error(errc::no_device, text("this program has no memory of the device ", which,
                                    ": link it with muster::cuda, or use the device cpu"));
}

namespace detail {

device_kind_entry::device_kind_entry(device::kind which, device_kind& what) noexcept : which_(which) {
  entry_of(which).store(&what, std::memory_order_release);
}

device_kind_entry::~device_kind_entry() { entry_of(which_).store(nullptr, std::memory_order_release); }

}  // namespace detail

}  // namespace muster
