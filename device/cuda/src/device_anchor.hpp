// SPDX-License-Identifier: BSL-1.0
#pragma once

// How far the stream of whoever owns a device's memory has come, where other processes see it. Layout:
// docs/formats/device_tensor.md.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <muster/base/device.hpp>
#include <muster/cuda/driver.hpp>
#include <muster/memory/detail/descriptor_exchange.hpp>
#include <muster/memory/detail/shared_block.hpp>
#include <muster/memory/domain.hpp>

namespace muster::detail {

/// What an anchor begins with.
struct device_anchor {
  /// Added when the owner's context is broken while it lives.
  static constexpr std::uint64_t broken_count = descriptor_exchange::dead_count >> 1U;

  /// How far the owner's stream has come. The domain's host adds descriptor_exchange::dead_count when the owner is
  /// dead, and the owner broken_count when its context is broken: what it had not written by then it never will, and
  /// both are beyond every count, so that nobody waits for it.
  alignas(64) std::atomic<std::uint64_t> reached;
};

/// What a reference says of what is still to come, and for messages.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct device_promise {
  std::uint64_t count = 0;  ///< how far the owner's stream will have come; 0: it has
  pid_t owner = 0;
  device where;
  std::uint64_t bytes = 0;
};

[[nodiscard]] bool is_there(const device_anchor& anchor, std::uint64_t count) noexcept;
[[nodiscard]] bool never_comes(const device_anchor& anchor, std::uint64_t count) noexcept;
/// Throws errc::peer_lost: what never_comes.
[[noreturn]] void throw_lost(const device_anchor& anchor, const device_promise& what);
/// The same for memory that went with its owner (sharing_means::handle). `cause`: how that was noticed.
[[noreturn]] void throw_gone(const device_promise& what, const char* cause);

/// Requires: the block is an anchor's.
[[nodiscard]] inline device_anchor& anchor_in(const shared_block& block) noexcept {
  return *reinterpret_cast<device_anchor*>(block.data());
}
[[nodiscard]] shared_block new_anchor();

/// A page of shared memory that the device can write and wait for.
///
/// Requires, for all members: the device's context is current.
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: keeps the block and the domain; borrows the driver.
class registered_anchor {
public:
  registered_anchor(const cuda_driver& driver, shared_block block);
  registered_anchor(const registered_anchor&) = delete;
  registered_anchor& operator=(const registered_anchor&) = delete;
  ~registered_anchor();

  [[nodiscard]] const shared_block& block() const noexcept { return block_; }
  [[nodiscard]] device_anchor& content() const noexcept { return anchor_in(block_); }
  /// Where the device has `reached`.
  [[nodiscard]] CUdeviceptr reached() const noexcept { return address_; }

private:
  const cuda_driver& driver_;
  const std::shared_ptr<domain> domain_;
  const shared_block block_;
  CUdeviceptr address_ = 0;
};

}  // namespace muster::detail
