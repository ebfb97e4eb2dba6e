// SPDX-License-Identifier: BSL-1.0
#include "sharing_table.hpp"

#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/memory/arena.hpp>

namespace muster::detail {

std::shared_ptr<exported_extent> sharing_table::export_extent(const cuda_device& device,
                                                              const std::shared_ptr<const device_extent>& memory) {
  const scoped_lock lock(mutex_);
  auto& found = exports_[memory.get()];
  if (found == nullptr) found = std::make_shared<exported_extent>(device, memory);
  return found;
}

std::shared_ptr<const device_extent> sharing_table::exported(std::uint64_t name) const {
  const scoped_lock lock(mutex_);
  for (const auto& [memory, each] : exports_) {
    if (each != nullptr && each->name().bits() == name) return each->memory();
  }
  return nullptr;
}

void sharing_table::forget(const device_extent* memory) {
  const scoped_lock lock(mutex_);
  exports_.erase(memory);
}

std::shared_ptr<const imported_extent> sharing_table::import(const std::shared_ptr<cuda_device>& device,
                                                             const device_tag& tag, const shared_block& anchor) {
  const scoped_lock lock(importing_);
  auto& known = imports_[tag.extent];
  if (auto found = known.lock()) return found;
  // Whoever lets go of it last may be in another context, or in none.
  const auto unmap = [device](const imported_extent* left) {
    try {
      const cuda_device::scope current(*device);
      delete left;
    } catch (const error&) {
      delete left;  // the context is gone, and the mapping with it
    }
  };
  std::shared_ptr<const imported_extent> made(new imported_extent(device, tag, anchor), unmap);
  std::erase_if(imports_, [](const auto& each) { return each.second.expired(); });
  imports_[tag.extent] = made;
  return made;
}

void sharing_table::keep(const device_piece& what, shared_block tag) {
  const scoped_lock lock(mutex_);
  kept_.push_back({what, std::move(tag)});
}

std::vector<device_piece> sharing_table::take_free() {
  const scoped_lock lock(mutex_);
  const auto others = std::partition(kept_.begin(), kept_.end(),
                                     [](const kept_piece& each) { return !is_ours_alone(each.tag); });
  std::vector<device_piece> found;
  for (auto each = others; each != kept_.end(); ++each) found.push_back(std::move(each->piece));
  kept_.erase(others, kept_.end());
  return found;
}

}  // namespace muster::detail
