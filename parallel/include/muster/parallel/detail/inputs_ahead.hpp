// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <muster/device/copy_lane.hpp>
#include <muster/device/tensor.hpp>
#include <muster/parallel/detail/share_inputs.hpp>

namespace muster::detail {

/// Inputs that go to the rank's device while the slice before theirs is computed: those that lie in pinned memory, and
/// are taken as they lie there. All others are left to the caller, and so are all where there is one slice, or the
/// device has no room for those of two.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the inputs, which are there, and stay as they are, until it has gone.
class inputs_ahead {
public:
  /// For the host it does nothing.
  inputs_ahead(const share_inputs& inputs, device to);
  inputs_ahead(const inputs_ahead&) = delete;
  inputs_ahead& operator=(const inputs_ahead&) = delete;
  /// Returns when nothing is copied any more.
  ~inputs_ahead();

  /// Puts what was copied into its place among what a function is going to get. What the device is given from now on
  /// waits for it.
  void take_into(std::vector<tensor>& given);
  /// Begins to copy those of the next slice that has rows. Requires: those of the slice before `slice` are not held any
  /// more, but by whoever wants to keep them.
  void begin_after(std::size_t slice);

private:
  struct copied {
    std::size_t input;
    tensor from;
    tensor there;
  };

  void begin(row_range rows);
  [[nodiscard]] bool find_room(row_range rows);

  const share_inputs& inputs_;
  const device to_;
  std::vector<copied> next_;
  std::unique_ptr<copy_lane> lane_;  // goes before what it writes to
};

}  // namespace muster::detail
