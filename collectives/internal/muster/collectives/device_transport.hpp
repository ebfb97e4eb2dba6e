// SPDX-License-Identifier: BSL-1.0
#pragma once

// The seam behind which a library is that carries tensors from device to device (muster::nccl). Groups call it, and
// programs call groups.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <muster/collectives/reduction.hpp>
#include <muster/device/device.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

/// One of the things that ranks do together: all give steps that fit together, in the same order.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct device_step {
  enum class kind : std::uint8_t {
    all_reduce,      ///< `count` elements of all ranks, combined, to all
    reduce,          ///< the same, to `rank`
    reduce_scatter,  ///< size() times `count` elements of all ranks, combined; the rank-th part of that to each
    broadcast,       ///< `count` elements of `rank`, to all
    all_gather,      ///< `count` elements of each rank, in the order of ranks, to all
    send,            ///< `count` elements to `rank`, which receives as many
    receive
  };

  kind what = kind::all_reduce;
  std::uintptr_t from = 0;  ///< on the device; elements lie in a row
  std::uintptr_t to = 0;    ///< may be `from` where that is in place
  std::size_t count = 0;
  muster::dtype type = muster::dtype::u8;
  reduction_op op = reduction_op::sum;
  std::size_t rank = 0;
};

/// One rank's end of a transport that has been joined.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Process safety: when another rank dies nothing ends by itself: abort() ends it.
class device_channel {
public:
  device_channel() = default;
  device_channel(const device_channel&) = delete;
  device_channel& operator=(const device_channel&) = delete;
  virtual ~device_channel() = default;

  /// Begins: after everything that the device's stream for computing has been given, and beside what it is given
  /// later. `kept`: what the addresses lie in, kept until it has ended, or for ever where it cannot be ended.
  /// Never waits. Requires: what was begun before has ended. Throws muster::error; then nothing else can be begun.
  virtual void launch(std::span<const device_step> steps, std::vector<tensor> kept) = 0;
  /// Whether what was begun last, joining at first, has been done. Never waits. Throws muster::error when it has failed
  /// and will not be done.
  [[nodiscard]] virtual bool is_done() = 0;
  /// Ends what was begun and lets go of the transport. Waits for the device some seconds at most.
  virtual void abort() noexcept = 0;
  /// Lets go of the transport in peace. Requires: what was begun has ended. Waits some seconds at most.
  virtual void close() noexcept = 0;
};

/// A library that joins devices of several processes.
///
/// Thread safety: safe.
class device_transport {
public:
  /// What a rank tells the others, at most so many bytes.
  static constexpr std::size_t most_offered = 480;

  device_transport() = default;
  device_transport(const device_transport&) = delete;
  device_transport& operator=(const device_transport&) = delete;
  virtual ~device_transport() = default;

  /// Whether steps reduce elements of that type so. The same in all processes.
  [[nodiscard]] virtual bool reduces(dtype type, reduction_op op) const noexcept = 0;
  /// What the others need to know of this rank. Throws muster::error, with what to do, where the transport cannot be
  /// used in this process.
  [[nodiscard]] virtual std::vector<std::byte> offer(device where, std::size_t rank) = 0;
  /// Begins to join; device_channel::is_done says when all have. `offers`: of all ranks. Throws muster::error.
  /// Where they do not go together, with why, in all ranks.
  [[nodiscard]] virtual std::unique_ptr<device_channel> join(std::span<const std::vector<std::byte>> offers,
                                                             device where, std::size_t rank) = 0;
  /// "NCCL 2.28.9". Requires: offer() did not throw.
  [[nodiscard]] virtual std::string name() = 0;
};

/// The transport between devices of a kind; null where the program is linked with none.
[[nodiscard]] device_transport* transport_of(device::kind which) noexcept;

namespace detail {

/// Makes transport_of find it, from its making to its end: for a static object of the library that implements it.
///
/// Thread safety: made and destroyed while no other thread uses groups.
class device_transport_entry {
public:
  device_transport_entry(device::kind which, device_transport& what) noexcept;
  device_transport_entry(const device_transport_entry&) = delete;
  device_transport_entry& operator=(const device_transport_entry&) = delete;
  ~device_transport_entry();

private:
  device::kind which_;
};

}  // namespace detail

}  // namespace muster
