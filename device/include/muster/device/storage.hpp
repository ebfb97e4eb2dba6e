// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <muster/base/detail/fork_count.hpp>
#include <muster/device/device.hpp>
#include <muster/memory/detail/shared_block.hpp>

namespace muster {

class device_block;

/// Where the bytes of a new tensor of the host lie.
enum class memory {
  shared,  ///< in the program's domain: goes to other processes by reference
  local    ///< on this process's heap: goes to other processes by copy
};

/// The bytes that tensors look at, and whatever keeps them there. All views of the same bytes share one.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const. The bytes need their own
/// discipline.
/// Lifetime: the bytes are there as long as it is; one in shared memory keeps the domain too.
/// Process safety: a forked child does not have the bytes of one in shared memory, unless its domain is inherited
/// (domain_options::inherited).
class storage {
public:
  /// Every storage that is allocated here begins at a multiple of this.
  static constexpr std::size_t alignment = 64;

  /// `bytes` bytes of undefined content. For no bytes nothing is allocated.
  /// Throws errc::out_of_memory when there is no room.
  /// Cost: shared memory comes in pieces of 64 KiB; a piece that was used before is handed out again, warm.
  [[nodiscard]] static std::shared_ptr<const storage> allocate(std::size_t bytes, memory where);

  /// A block, and a share in its domain. Its size may be more than its maker asked for.
  [[nodiscard]] static std::shared_ptr<const storage> over(shared_block block);

  /// Bytes of somebody else, there as long as `keeper` is; its deleter gives them back.
  [[nodiscard]] static std::shared_ptr<const storage> over(std::span<std::byte> bytes, std::shared_ptr<void> keeper);

  /// Memory on a device.
  [[nodiscard]] static std::shared_ptr<const storage> over(std::shared_ptr<const device_block> block);

  /// The same bytes, for tensors that cannot be written to: all of them, where tensor::as_read_only() is one. Null for
  /// null.
  ///@{
  [[nodiscard]] static std::shared_ptr<const storage> read_only(std::shared_ptr<const storage> of);
  [[nodiscard]] static std::shared_ptr<const storage> read_only(shared_block block);
  ///@}

  storage(const storage&) = delete;
  storage& operator=(const storage&) = delete;

  /// On a device there are as many, at addresses that nobody can read: device_block::address() is theirs.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// Whether tensors over it are read-only. bytes() are not guarded.
  [[nodiscard]] bool is_read_only() const noexcept { return read_only_; }
  /// Null on the host.
  [[nodiscard]] const device_block* on_device() const noexcept { return on_device_.get(); }
  /// The block it is, or an empty handle where the memory is not shared.
  [[nodiscard]] const shared_block& block() const noexcept { return block_; }
  /// Of the process that has the bytes; of every process where forked children have them too.
  [[nodiscard]] fork_stamp stamp() const noexcept { return stamp_; }

private:
  struct only_here {};

public:
  /// For the functions above.
  storage(only_here, std::span<std::byte> bytes, std::shared_ptr<void> keeper, shared_block block,
          std::shared_ptr<const device_block> on_device = nullptr, bool is_read_only = false) noexcept;

private:
  [[nodiscard]] static std::shared_ptr<const storage> over_block(shared_block block, bool is_read_only);

  // The keeper is the domain, a piece of the heap or somebody else's; the block goes before it.
  std::shared_ptr<void> keeper_;
  shared_block block_;
  std::shared_ptr<const device_block> on_device_;
  std::span<std::byte> bytes_;
  fork_stamp stamp_;
  bool read_only_ = false;
};

}  // namespace muster
