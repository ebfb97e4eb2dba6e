// SPDX-License-Identifier: BSL-1.0
#include <muster/cuda/pinned_memory.hpp>

#include <exception>
#include <optional>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/storage.hpp>

#include "cuda_devices.hpp"

namespace muster {

namespace {

// Blocks of more than this have pages of their own.
constexpr std::size_t least_bytes = std::size_t{64} << 10U;

std::span<std::byte> pages_of(const tensor& what) { return what.storage()->bytes(); }

void require_shared(const tensor& what) {
  const auto where = what.device();
  if (where.is_cpu() && (what.storage() == nullptr || what.storage()->block())) return;
  throw error(errc::invalid_argument,
              text("pinned_memory was given a tensor on ", where.is_cpu() ? "this process's heap" : text(where),
                   ": it takes one in shared memory of the host, which is where tensors are made unless they are asked "
                   "for memory::local or a device"));
}

detail::pin_table& table() { return detail::cuda_devices::of_program().pins(); }

}  // namespace

pinned_memory::pinned_memory(cuda_device& on, const tensor& what) : what_(what) {
  require_shared(what);
  if (what.storage() == nullptr || pages_of(what).size() <= least_bytes) return;
  auto device = on.shared_from_this();
  const cuda_device::scope current(on);
  table().add(on.driver(), pages_of(what));
  device_ = std::move(device);
}

pinned_memory& pinned_memory::operator=(pinned_memory&& other) noexcept {
  std::swap(what_, other.what_);
  std::swap(device_, other.device_);
  return *this;
}

// What devices were asked for may still read the pages, or write them: that is waited for, of all, since pages that
// were registered by way of one are so for each. Whatever has become of this one, the pages are noted no longer: the
// arena gives them to others.
pinned_memory::~pinned_memory() {
  if (device_ == nullptr || !device_->is_here()) return;
  detail::cuda_devices::of_program().settle();
  std::optional<cuda_device::scope> current;
  try {
    current.emplace(*device_);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the context is gone, and what was registered in it
  }
  table().remove(device_->driver(), pages_of(what_));
}

std::shared_ptr<void> cuda_device::pin(const tensor& what) {
  if (!what.device().is_cpu() || !what.is_shared()) return nullptr;
  auto made = std::make_shared<pinned_memory>(*this, what);
  return made->is_pinned() ? std::move(made) : nullptr;
}

}  // namespace muster
