// SPDX-License-Identifier: BSL-1.0
#include "sharing_table.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/memory/detail/arena.hpp>

namespace muster::detail {

std::shared_ptr<exported_extent> sharing_table::export_extent(const cuda_device& device,
                                                              const std::shared_ptr<const device_extent>& memory) {
  const scoped_lock lock(mutex_);
  if (const auto found = exports_.find(memory.get()); found != exports_.end()) return found->second;
  auto made = std::make_shared<exported_extent>(device, memory);
  exports_.emplace(memory.get(), made);
  return made;
}

std::shared_ptr<const device_extent> sharing_table::exported(std::uint64_t name) const {
  const scoped_lock lock(mutex_);
  for (const auto& [memory, each] : exports_) {
    if (each->name().bits() == name) return each->memory();
  }
  return nullptr;
}

void sharing_table::forget(const device_extent* memory) {
  const scoped_lock lock(mutex_);
  const auto found = exports_.find(memory);
  if (found == exports_.end()) return;
  found->second->withdraw();
  if (found->second->is_open_elsewhere()) left_.push_back(found->second);
  exports_.erase(found);
}

void sharing_table::drop_closed() {
  const scoped_lock lock(mutex_);
  std::erase_if(left_, [](const auto& each) { return !each->is_open_elsewhere(); });
}

// Unmaps when the last one lets go of it.
struct sharing_table::import_keeper {
  import_keeper(sharing_table& of, std::uint64_t named) : table(of), name(named) {}
  import_keeper(const import_keeper&) = delete;
  import_keeper& operator=(const import_keeper&) = delete;
  ~import_keeper() {
    if (extent != nullptr) table.unmap(extent, name);
  }

  sharing_table& table;
  const std::uint64_t name;
  const imported_extent* extent = nullptr;
};

// Unmapping takes the lock: so the keeper is made before that is taken, and once something is mapped nothing fails.
std::shared_ptr<const imported_extent> sharing_table::import(const std::shared_ptr<cuda_device>& device,
                                                             const device_tag& tag, const shared_block& anchor) {
  const auto keeper = std::make_shared<import_keeper>(*this, tag.extent);
  scoped_lock lock(importing_);
  std::erase_if(imports_, [](const auto& each) { return !each.second.is_mapped; });  // what could not be
  // A page is registered with the driver once: who has let go of it last may not have come to unregister it.
  for (;;) {
    auto& entry = imports_[tag.extent];
    if (auto found = entry.extent.lock()) return found;
    if (!entry.is_mapped) break;
    unmapped_.wait(lock);
  }
  auto& entry = imports_[tag.extent];
  keeper->extent = new imported_extent(device, tag, anchor);
  std::shared_ptr<const imported_extent> made(keeper, keeper->extent);
  entry = {.extent = made, .is_mapped = true};
  return made;
}

// Whoever lets go of it last may be in another context, or in none.
void sharing_table::unmap(const imported_extent* left, std::uint64_t name) {
  // This table's: it outlives the call.
  const auto device = left->owner();  // NOLINT(performance-unnecessary-copy-initialization)
  if (!device->is_here()) return;     // in a forked child it is its parent's
  try {
    const cuda_device::scope current(*device);
    delete left;
  } catch (const error&) {
    delete left;  // the context is gone, and the mapping with it
  }
  const scoped_lock lock(importing_);
  imports_.erase(name);
  unmapped_.notify_all();
}

void sharing_table::keep_mapped(const std::shared_ptr<const imported_extent>& which) {
  const scoped_lock lock(mutex_);
  if (std::ranges::find(kept_mappings_, which) == kept_mappings_.end()) kept_mappings_.push_back(which);
}

std::shared_ptr<const imported_extent> sharing_table::kept_mapping(std::uint64_t name) const {
  const scoped_lock lock(mutex_);
  const auto found = std::ranges::find_if(kept_mappings_, [name](const auto& each) { return each->name() == name; });
  return found != kept_mappings_.end() ? *found : nullptr;
}

// Unmapped without the lock.
void sharing_table::drop_kept() noexcept {
  std::vector<std::shared_ptr<const imported_extent>> dropped;
  const scoped_lock lock(mutex_);
  dropped.swap(kept_mappings_);
}

void sharing_table::keep(const device_piece& what, shared_block tag) {
  const scoped_lock lock(mutex_);
  kept_.push_back({what, std::move(tag)});
}

std::vector<device_piece> sharing_table::take_free() {
  const scoped_lock lock(mutex_);
  const auto others =
      std::partition(kept_.begin(), kept_.end(), [](const kept_piece& each) { return !is_ours_alone(each.tag); });
  std::vector<device_piece> found;
  for (auto each = others; each != kept_.end(); ++each) found.push_back(std::move(each->piece));
  kept_.erase(others, kept_.end());
  return found;
}

}  // namespace muster::detail
