// SPDX-License-Identifier: BSL-1.0
#pragma once

// The seam behind which devices other than the host are. A library for a kind of device (muster::cuda) implements what
// is here; tensors call it, and programs call tensors.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <muster/device/detail/arithmetic_op.hpp>
#include <muster/device/detail/rule_step.hpp>
#include <muster/device/device.hpp>

namespace muster {

class copy_lane;
class device_block;
class frame_reader;
class frame_writer;
class tensor;

/// What can be done with tensors on one device.
///
/// All operations but copies to and from the host return when they have been given to the device, which does them in
/// that order, after everything that was given to it before (by the same process; muster/cuda/stream.hpp says more).
/// Callers have checked dtypes and shapes; no operation is called for tensors without elements.
///
/// Thread safety: safe.
/// Lifetime: blocks keep it.
class device_operations {
public:
  device_operations() = default;
  device_operations(const device_operations&) = delete;
  device_operations& operator=(const device_operations&) = delete;
  virtual ~device_operations() = default;

  [[nodiscard]] virtual device where() const noexcept = 0;
  /// At least one byte is allocated. Throws errc::out_of_memory with what was asked for and what is free.
  [[nodiscard]] virtual std::shared_ptr<const device_block> allocate(std::size_t bytes) = 0;

  /// Elements of one dtype and shape; one of both is here, the other here, on the host or on another device. Where one
  /// is on the host, returns when that one may be read or changed again.
  virtual void copy(const tensor& to, const tensor& from) = 0;
  /// All elements become the one whose bytes are given.
  virtual void fill(const tensor& which, std::span<const std::byte> element) = 0;
  /// As muster::convert_into; both are here.
  virtual void convert(const tensor& to, const tensor& from) = 0;
  /// As the functions of muster/device/arithmetic.hpp; both are here. It and the next three throw
  /// errc::invalid_argument where what they write repeats elements.
  virtual void accumulate(const tensor& into, const tensor& from, element_op op) = 0;
  virtual void scale(const tensor& which, double factor) = 0;
  virtual void axpy(double factor, const tensor& x, const tensor& y) = 0;
  /// Each element is divided by `divisor`, rounded to the dtype first. For f16, bf16, f32, f64 and complex numbers.
  virtual void divide(const tensor& which, double divisor) = 0;
  /// One step of an optimizer, with the bits of the host's. Throws errc::invalid_argument for a rule or tensors that
  /// cannot be.
  virtual void apply(const rule_step& rule, const rule_step_tensors& tensors) = 0;
  /// Returns when all that was given to the device by this thread's process has been done.
  virtual void synchronize() = 0;

  /// Lets the device read and write the whole memory that a tensor of the host is a view of by itself, as long as what
  /// is returned is there, which keeps that memory. Null where that gains nothing: for tensors that do not lie in
  /// shared memory, or are small, and on devices that need no such thing. Throws errc::out_of_memory where the system
  /// has no room for pages that stay.
  [[nodiscard]] virtual std::shared_ptr<void> pin(const tensor& what);
  /// For copies beside what is computed; null where the device makes none.
  [[nodiscard]] virtual std::unique_ptr<copy_lane> make_copy_lane();
};

/// A piece of a device's memory.
///
/// Thread safety: distinct objects: safe. Shared objects: safe. The bytes need their own discipline.
/// Process safety: several processes may have it; it is there as long as one of them is, or, where a driver cannot do
/// that, as long as the one is that has allocated it. A forked child has none of its parent's.
class device_block {
public:
  device_block() = default;
  device_block(const device_block&) = delete;
  device_block& operator=(const device_block&) = delete;
  virtual ~device_block() = default;

  [[nodiscard]] virtual device where() const noexcept = 0;
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;
  /// Those of its device. In a process that got the block from another, the device is opened by this.
  [[nodiscard]] virtual device_operations& operations() const = 0;
  /// Where it begins for the device, in this process. A block that came from another process is mapped by this.
  [[nodiscard]] virtual std::uintptr_t address() const = 0;
  /// What keeps it mapped in this process, without keeping the memory from its owner: for whoever is going to be sent
  /// pieces of the same memory again, and would map it each time. Null where nothing has to be kept.
  [[nodiscard]] virtual std::shared_ptr<const void> mapping() const { return nullptr; }
  /// Whether write_to can be called: other processes can have it.
  [[nodiscard]] virtual bool is_shareable() const noexcept = 0;
  /// Whether it is there, for those who have a reference, also when the process that has allocated it has ended.
  [[nodiscard]] virtual bool outlives_its_process() const noexcept { return true; }
  /// Writes a reference, for device_kind::read_from, and attaches what it needs; twice the same number of bytes.
  /// Requires: is_shareable(), out.refers().
  virtual void write_to(frame_writer& out) const = 0;
  /// Called when a copy goes where a reference could have gone: may say why. Requires: not is_shareable().
  virtual void note_copied() const noexcept {}
};

/// All devices of a kind.
///
/// Thread safety: safe.
class device_kind {
public:
  device_kind() = default;
  device_kind(const device_kind&) = delete;
  device_kind& operator=(const device_kind&) = delete;
  virtual ~device_kind() = default;

  /// Throws errc::no_device, errc::invalid_argument for an index that there is not, with how many there are.
  [[nodiscard]] virtual std::shared_ptr<device_operations> open(device which) = 0;
  /// Memory that somebody else has allocated, there as long as `keeper` is; other processes get copies of it. Throws as
  /// open().
  [[nodiscard]] virtual std::shared_ptr<const device_block> over(device where, std::uintptr_t address,
                                                                 std::size_t bytes, std::shared_ptr<void> keeper) = 0;
  /// Does not open the device. Throws errc::corrupted for what cannot be a reference.
  [[nodiscard]] virtual std::shared_ptr<const device_block> read_from(frame_reader& in) = 0;
  /// Those that this process sees, and how many bytes are free on each; none where there is no driver. Opens them.
  [[nodiscard]] virtual std::vector<std::pair<device, std::uint64_t>> free_memory() = 0;
  /// Returns when all has been done that this process has given to those devices that it has opened. Throws
  /// errc::device_lost. Opens none.
  virtual void synchronize() = 0;
};

/// The library for a kind of device; it is there when the program is linked with it. Throws errc::no_device, with what
/// to link, when it is not. Requires: not the host.
[[nodiscard]] device_kind& kind_of(device which);
/// The same; null when it is not there.
[[nodiscard]] device_kind* find_kind_of(device which) noexcept;

namespace detail {

/// Makes kind_of find it, from its making to its end: for a static object of the library that implements it.
///
/// Thread safety: made and destroyed while no other thread uses devices of that kind.
class device_kind_entry {
public:
  device_kind_entry(device::kind which, device_kind& what) noexcept;
  device_kind_entry(const device_kind_entry&) = delete;
  device_kind_entry& operator=(const device_kind_entry&) = delete;
  ~device_kind_entry();

private:
  device::kind which_;
};

}  // namespace detail

}  // namespace muster
