// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/shared_block.hpp>

#include "awaited_list.hpp"
#include "device_heap.hpp"
#include "device_share.hpp"
#include "loss_watch.hpp"

namespace muster::detail {

/// What a process shares of one device's memory with others, and what they share with it.
///
/// Requires, for all members but kept_mapping and drop_kept: the device's context is current.
/// Thread safety: distinct objects: safe. Shared objects: safe.
class sharing_table {
public:
  explicit sharing_table(const cuda_driver& driver) : watch_(driver) {}

  /// The extent as others may map it; exported if it is not yet.
  [[nodiscard]] std::shared_ptr<exported_extent> export_extent(const cuda_device& device,
                                                               const std::shared_ptr<const device_extent>& memory)
      MUSTER_EXCLUDES(mutex_);
  /// The extent of this process that has been exported under that name; null when there is none.
  [[nodiscard]] std::shared_ptr<const device_extent> exported(std::uint64_t name) const MUSTER_EXCLUDES(mutex_);
  /// Nobody can map the extent any more. Requires: nobody else has a piece of it. Where memory must not be freed while
  /// others have it open, it is kept until they have not.
  void forget(const device_extent* memory) MUSTER_EXCLUDES(mutex_);
  /// Drops what was kept for that.
  void drop_closed() MUSTER_EXCLUDES(mutex_);

  /// The extent of another process that `tag` is in, mapped if it is not yet. Throws as imported_extent.
  [[nodiscard]] std::shared_ptr<const imported_extent> import(const std::shared_ptr<cuda_device>& device,
                                                              const device_tag& tag, const shared_block& anchor)
      MUSTER_EXCLUDES(importing_);

  /// Keeps an extent of another process mapped until drop_kept(), if nobody else does.
  void keep_mapped(const std::shared_ptr<const imported_extent>& which) MUSTER_EXCLUDES(mutex_);
  /// The extent of that name, if it is kept so; else null.
  [[nodiscard]] std::shared_ptr<const imported_extent> kept_mapping(std::uint64_t name) const MUSTER_EXCLUDES(mutex_);
  void drop_kept() noexcept MUSTER_EXCLUDES(mutex_);

  /// A piece that this process has no use for, but others may.
  void keep(const device_piece& what, shared_block tag) MUSTER_EXCLUDES(mutex_);
  /// Those of them that nobody else has any more.
  [[nodiscard]] std::vector<device_piece> take_free() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] static bool is_ours_alone(const shared_block& tag) { return tag.owner()->is_sole(tag); }

  /// They are kept until somebody takes them, who has waited for the device since then.
  template <class Left>
  void leave(Left what) noexcept MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    left_behind_.add(std::move(what));
  }
  [[nodiscard]] left_list take_left() noexcept MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    return std::move(left_behind_);
  }

  /// Of what was promised to others, and of what others have promised.
  [[nodiscard]] const loss_watch& watch() const noexcept { return watch_; }
  [[nodiscard]] awaited_list& awaited() noexcept { return awaited_; }

private:
  struct kept_piece {
    device_piece piece;
    shared_block tag;
  };

  const loss_watch watch_;
  awaited_list awaited_;
  mutable mutex mutex_;
  std::map<const device_extent*, std::shared_ptr<exported_extent>> exports_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<exported_extent>> left_ MUSTER_GUARDED_BY(mutex_);  // others may have them open
  std::vector<kept_piece> kept_ MUSTER_GUARDED_BY(mutex_);
  left_list left_behind_ MUSTER_GUARDED_BY(mutex_);

  struct import_entry {
    std::weak_ptr<const imported_extent> extent;
    bool is_mapped = false;  // also when nobody has it any more, until it is unmapped
  };
  struct import_keeper;
  void unmap(const imported_extent* left, std::uint64_t name) MUSTER_EXCLUDES(importing_);

  mutex importing_;  // held while a descriptor is on its way
  condition unmapped_;
  std::map<std::uint64_t, import_entry> imports_ MUSTER_GUARDED_BY(importing_);
  // Goes first: unmapping takes the others.
  std::vector<std::shared_ptr<const imported_extent>> kept_mappings_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
