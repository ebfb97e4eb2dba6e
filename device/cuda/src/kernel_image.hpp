// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

namespace muster::detail {

/// The compiled kernels of kernels/kernels.cu, for the devices that the build was told of: what cuModuleLoadData takes.
/// Lifetime: the program's.
[[nodiscard]] const std::byte* kernel_image() noexcept;

}  // namespace muster::detail
