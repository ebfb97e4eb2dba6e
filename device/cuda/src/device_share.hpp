// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a device's memory goes to other processes by reference. Layout: docs/formats/device_tensor.md.
//
// Works as follows. A piece that is sent gets a *tag*: a block of the domain's shared memory that says where the piece
// is, and whose holds count who has it, so that a process that dies lets go of it like of any block. The piece is free
// again when its owner alone holds the tag. The extent that it is cut from is exported once: its descriptor is
// deposited with the domain's host, and its *anchor*, another block, keeps the descriptor there when the owner has
// died, for as long as somebody has a piece of it. What the device has not written yet when a reference is sent, its
// receiver's stream waits for: the owner's stream counts in a word of the anchor, and the reference says how far.
//
// Where a device's memory has no descriptor (sharing_means::handle), what is deposited is a file with the memory's
// handle. The memory is there only as long as its owner then, so that whoever uses a reference looks whether that
// lives; and the owner keeps an extent for as long as others have it open, which their holds on the anchor say.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/memory/detail/descriptor_exchange.hpp>
#include <muster/memory/detail/shared_block.hpp>
#include <muster/memory/domain.hpp>

#include "cuda_block.hpp"
#include "device_anchor.hpp"
#include "device_extent.hpp"
#include "device_heap.hpp"

namespace muster {
class frame_reader;
class frame_writer;
}  // namespace muster

namespace muster::detail {

/// What lies in a tag. Written before anybody else has it, and never after.
struct device_tag {
  static constexpr std::uint64_t expected_magic = 0x3247'4154'5644'4d4d;

  std::uint64_t magic = expected_magic;
  std::uint64_t extent = 0;  ///< the descriptor_name of its descriptor
  std::uint64_t extent_bytes = 0;
  std::uint64_t offset = 0;  ///< of the piece in the extent
  std::uint64_t bytes = 0;
  std::array<std::byte, 16> uuid{};                 ///< of the device
  std::uint64_t index = 0;                          ///< of the device, as the owner calls it
  sharing_means means = sharing_means::descriptor;  ///< what the descriptor leads to
  std::uint64_t owner = 0;                          ///< its process, for messages
};

/// What a process lets go of when its device has done what it was given: a reference that came from another.
struct left_blocks {
  std::shared_ptr<domain> keeper;
  shared_block tag;
  shared_block anchor;
  std::unique_ptr<left_blocks> next;  // in a left_list
};

/// Those of a process that are let go of together.
class left_list {
public:
  left_list() noexcept = default;
  left_list(left_list&&) noexcept = default;
  left_list& operator=(left_list&&) = delete;
  ~left_list() {
    while (first_ != nullptr) first_ = std::move(first_->next);
  }

  void add(std::unique_ptr<left_blocks> what) noexcept {
    what->next = std::move(first_);
    first_ = std::move(what);
  }
  void add(left_list others) noexcept {
    while (others.first_ != nullptr) {
      auto rest = std::move(others.first_->next);
      add(std::move(others.first_));
      others.first_ = std::move(rest);
    }
  }

private:
  std::unique_ptr<left_blocks> first_;
};

/// An extent of this process that others may map.
///
/// Requires, for all members: the device's context is current.
/// Thread safety: distinct objects: safe. Shared objects: safe.
class exported_extent {
public:
  /// Throws what descriptor_exchange::deposit does.
  exported_extent(const cuda_device& device, std::shared_ptr<const device_extent> memory);
  exported_extent(const exported_extent&) = delete;
  exported_extent& operator=(const exported_extent&) = delete;
  ~exported_extent();

  /// Nobody can map it any more. Without this, others can for as long as they have pieces of it, also when this process
  /// has ended.
  void withdraw() noexcept;

  [[nodiscard]] descriptor_name name() const noexcept { return name_; }
  [[nodiscard]] const shared_block& anchor() const noexcept { return anchor_.block(); }
  [[nodiscard]] const std::shared_ptr<const device_extent>& memory() const noexcept { return memory_; }
  /// Whether others may still have it open, so that it must not be freed. Requires: withdrawn.
  [[nodiscard]] bool is_open_elsewhere() const;
  /// A tag for a piece of it.
  [[nodiscard]] shared_block tag_of(const cuda_device& device, const device_piece& piece, std::size_t bytes) const;
  /// Has the stream count when it has done all that it was given by now, and returns how far it will have counted. 0:
  /// it has done so already.
  [[nodiscard]] std::uint64_t mark(const cuda_device& device) MUSTER_EXCLUDES(mutex_);

private:
  const std::shared_ptr<domain> domain_;
  const std::shared_ptr<const device_extent> memory_;
  const descriptor_name name_;
  const registered_anchor anchor_;
  mutex mutex_;  // the stream gets counts in their order
  std::uint64_t counted_ MUSTER_GUARDED_BY(mutex_) = 0;
};

/// An extent of another process, mapped here.
///
/// Requires, for all members: the device's context is current.
/// Thread safety: distinct objects: safe. Shared objects: safe.
class imported_extent {
public:
  /// Throws errc::peer_lost when the descriptor, or the memory, is not there any more, errc::corrupted when it is none.
  imported_extent(std::shared_ptr<cuda_device> device, const device_tag& tag, const shared_block& anchor);
  imported_extent(const imported_extent&) = delete;
  imported_extent& operator=(const imported_extent&) = delete;
  ~imported_extent();

  [[nodiscard]] CUdeviceptr address() const noexcept { return memory_->address(); }
  [[nodiscard]] std::size_t size() const noexcept { return memory_->size(); }
  [[nodiscard]] const device_extent& memory() const noexcept { return *memory_; }
  [[nodiscard]] const std::shared_ptr<cuda_device>& owner() const noexcept { return device_; }
  /// As device_tag::extent.
  [[nodiscard]] std::uint64_t name() const noexcept { return name_.bits(); }
  /// What the device's stream is given from now on waits until the owner's has come so far; cuda_device::synchronize
  /// says if that never was. Throws as require().
  void await(const device_promise& what) const;
  /// Throws errc::peer_lost when that will never be, or the memory went with its owner. May be called without a
  /// context.
  void require(const device_promise& what) const;

private:
  [[nodiscard]] bool is_owner_alive() const noexcept;

  const std::shared_ptr<cuda_device> device_;
  const std::shared_ptr<domain> domain_;
  const descriptor_name name_;
  std::optional<registered_anchor> anchor_;
  std::optional<device_extent> memory_;
};

/// A reference that came from another process, or back.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: keeps the domain, and the device once it has been asked for.
class received_block final : public cuda_memory_block {
public:
  /// Throws errc::corrupted for what cannot be a reference.
  [[nodiscard]] static std::shared_ptr<const received_block> read_from(frame_reader& in);

  /// `is_lent`: the sender keeps the piece until the task that it came with has ended. So does this process keep the
  /// extent mapped then, for the next task (kept_for_next_task).
  received_block(const device_tag& tag, shared_block tag_block, shared_block anchor, std::uint64_t count, bool is_lent);
  ~received_block() override;

  [[nodiscard]] device where() const noexcept override;
  [[nodiscard]] std::size_t size() const noexcept override { return static_cast<std::size_t>(tag_.bytes); }
  [[nodiscard]] device_operations& operations() const override { return *opened().device; }
  [[nodiscard]] std::uintptr_t address() const override { return opened().address; }
  [[nodiscard]] std::shared_ptr<const void> mapping() const override { return opened().extent; }
  [[nodiscard]] bool is_shareable() const noexcept override { return true; }
  [[nodiscard]] bool outlives_its_process() const noexcept override { return tag_.means == sharing_means::descriptor; }
  void write_to(frame_writer& out) const override;
  void open_to(const cuda_device& peer) const override;
  /// Whether it has been used here.
  [[nodiscard]] bool is_open() const MUSTER_EXCLUDES(mutex_);

private:
  struct opening {
    std::shared_ptr<cuda_device> device;
    std::shared_ptr<const void> extent;  // imported, or this process's own
    const device_extent* memory = nullptr;
    const imported_extent* imported = nullptr;
    CUdeviceptr address = 0;
    std::unique_ptr<left_blocks> last;  // room for what is let go of at the end, when nothing must fail
  };
  [[nodiscard]] const opening& opened() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] opening open() const;
  [[nodiscard]] device_promise promise_of(device where) const;

  const process_mark made_in_;
  const device_tag tag_;
  const std::shared_ptr<domain> domain_;
  shared_block tag_block_;
  shared_block anchor_;
  const std::uint64_t count_;
  const bool is_lent_;
  const std::shared_ptr<const imported_extent> kept_;  // by the task before this one
  mutable mutex mutex_;
  mutable std::optional<opening> opened_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
