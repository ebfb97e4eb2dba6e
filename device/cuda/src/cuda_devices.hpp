// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/log.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/detail/device_block.hpp>

#include "pin_table.hpp"

namespace muster::detail {

using device_uuid = std::array<std::byte, 16>;

/// Why a tensor on a GPU goes to another process as a copy although nobody has asked for that.
enum class copy_cause : std::uint8_t {
  foreign,  ///< its memory is another library's
  no_means  ///< sharing_means::none
};

/// All GPUs of the process: the one object behind device::cuda(…), since the driver has one state per process.
///
/// Thread safety: safe.
/// Process safety: in a forked child all members throw errc::forked once a device has been opened, because the driver
/// does not survive fork().
class cuda_devices final : public device_kind {
public:
  [[nodiscard]] static cuda_devices& of_program();

  [[nodiscard]] std::shared_ptr<cuda_device> open_one(device which) MUSTER_EXCLUDES(mutex_);
  /// The device that is called so everywhere. Throws errc::invalid_argument where this process does not see it.
  [[nodiscard]] std::shared_ptr<cuda_device> open_one(const device_uuid& which) MUSTER_EXCLUDES(mutex_);
  /// What this process calls it; nothing where it does not see it, or has no driver, or is forked from one that had.
  /// Where there was no driver once, none is looked for again until somebody opens a device.
  /// Cost: the first time in a process that has not used the driver yet, some tenths of a second; makes no context.
  [[nodiscard]] std::optional<device> find(const device_uuid& which) noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] unsigned count() MUSTER_EXCLUDES(mutex_);

  [[nodiscard]] std::shared_ptr<device_operations> open(device which) override { return open_one(which); }
  [[nodiscard]] std::shared_ptr<const device_block> over(device where, std::uintptr_t address, std::size_t bytes,
                                                         std::shared_ptr<void> keeper) override;
  [[nodiscard]] std::shared_ptr<const device_block> read_from(frame_reader& in) override;

  [[nodiscard]] std::vector<std::pair<device, std::uint64_t>> free_memory() override MUSTER_EXCLUDES(mutex_);
  void synchronize() override MUSTER_EXCLUDES(mutex_);
  /// Waits until all have done what they were given: cuda_device::settle().
  void settle() noexcept MUSTER_EXCLUDES(mutex_);
  /// What devices are given is waited for before others are told that something is done.
  static void note_pending() noexcept;

  /// The extent of another process of that name, if the task before has left it mapped here; else null.
  [[nodiscard]] std::shared_ptr<const imported_extent> kept_mapping(std::uint64_t name) MUSTER_EXCLUDES(mutex_);
  void drop_kept() noexcept MUSTER_EXCLUDES(mutex_);

  /// Waits for what the devices were given: others may have been sent what is to come of it. Before the driver ends.
  void finish() noexcept MUSTER_EXCLUDES(mutex_);

  void log_to(log_sink where) MUSTER_EXCLUDES(log_mutex_);
  /// Says so, once for each cause.
  void note_copied(copy_cause why, device where) noexcept MUSTER_EXCLUDES(log_mutex_);

  /// Pages of the host that devices read and write by themselves.
  [[nodiscard]] pin_table& pins() noexcept { return pins_; }

private:
  [[nodiscard]] const std::shared_ptr<const cuda_driver>& driver() MUSTER_REQUIRES(mutex_);
  // Before the lock is taken: in a forked child a thread that it does not have may have it.
  [[nodiscard]] bool is_elsewhere() const noexcept;
  void require_here() const;
  [[nodiscard]] std::vector<std::shared_ptr<cuda_device>> opened() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<cuda_device> opened_behind(device which) MUSTER_EXCLUDES(mutex_);
  void require_index(device which) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] const std::map<device_uuid, device>& names() MUSTER_REQUIRES(mutex_);

  pin_table pins_;
  mutex mutex_;
  std::unique_ptr<const process_mark> made_in_ MUSTER_GUARDED_BY(mutex_);
  std::atomic<const process_mark*> mark_ = nullptr;  // that one, set under the lock
  std::shared_ptr<const cuda_driver> driver_ MUSTER_GUARDED_BY(mutex_);
  std::map<device_uuid, device> names_ MUSTER_GUARDED_BY(mutex_);  // of all that there are, once asked for
  std::map<device, std::shared_ptr<cuda_device>> open_ MUSTER_GUARDED_BY(mutex_);
  bool has_no_driver_ MUSTER_GUARDED_BY(mutex_) = false;  // found out by find()
  mutex log_mutex_;
  log_sink log_ MUSTER_GUARDED_BY(log_mutex_) = log_to_stderr;
  std::set<copy_cause> noted_ MUSTER_GUARDED_BY(log_mutex_);
};

}  // namespace muster::detail
