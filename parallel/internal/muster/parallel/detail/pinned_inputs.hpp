// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <muster/device/device.hpp>
#include <muster/parallel/detail/share_inputs.hpp>

namespace muster::detail {

/// Keeps the inputs of calls that come again pinned in a rank that has a device, which then reads them at full speed,
/// and beside what it computes. Pinning takes longer than a copy, so what is used once is not pinned: an input is when
/// the call before has had it too, the whole memory that it is a view of, and until the first call that does not.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: keeps inputs of the last call, so at most those; what they are lent must be kept, or clear() be called.
/// Cost: on the host none.
class pinned_inputs {
public:
  explicit pinned_inputs(device on) noexcept : on_(on) {}

  /// A call has these. Throws errc::device_lost; whatever else the system has against it, those are copied as others.
  void begin(std::span<const sent_input> inputs);
  /// That call has ended, and its device is done: what it has not had is let go.
  void end();
  /// Lets go of all, and knows of no call before.
  void clear() noexcept { seen_.clear(); }

private:
  struct entry {
    const std::byte* first;
    std::size_t bytes;
    bool is_used = true;  // by the present call
    bool was_tried = false;
    std::shared_ptr<void> pin{};
  };

  void use(const tensor& input);
  void try_to_pin(entry& which, const tensor& input) const;

  const device on_;
  std::vector<entry> seen_;  // of the call before, and of the present one
};

}  // namespace muster::detail
