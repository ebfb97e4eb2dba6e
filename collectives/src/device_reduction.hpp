// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <muster/collectives/device_transport.hpp>
#include <muster/collectives/reduction.hpp>
#include <muster/device/detail/arithmetic_op.hpp>
#include <muster/device/tensor.hpp>

namespace muster::detail {

/// How elements on devices are combined.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct reduction_plan {
  enum class way : std::uint8_t {
    none,    ///< only the host can
    native,  ///< by the transport, in its order
    ordered  ///< by the device's kernels, in the order of ranks
  };

  way how = way::none;
  muster::dtype type = muster::dtype::u8;  ///< of what the transport is given
  std::size_t parts = 1;                   ///< elements of that for one of the tensor's
  reduction_op native_op = reduction_op::sum;
  element_op op = element_op::sum;
  std::size_t divisor = 1;  ///< of the result
};

/// The same on all ranks, which have compared type and op. `is_ordered`: group_options::is_ordered_on_devices.
[[nodiscard]] reduction_plan plan_reduction(const device_transport& by, const reduction& with, dtype type,
                                            std::size_t ranks, bool is_ordered);

/// Each element is divided, to the bit as on the host. Requires: f16, bf16, f32 or c64, or the divisor is a power of 2.
void divide(const tensor& which, std::size_t divisor);

/// The same elements as those of another type, in a row. Requires: contiguous, on a device.
[[nodiscard]] tensor as_row_of(const tensor& what, dtype type);

/// The rows of `parts`, combined in their order, into `out`: f16 and bf16 by f32. Requires: rows of as many elements as
/// `out` has, all on one device.
void combine_in_order(const tensor& parts, const tensor& out, element_op op, std::size_t divisor);

}  // namespace muster::detail
