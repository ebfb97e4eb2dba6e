// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace gpu_digits {

/// What kernels.cu was compiled to.
[[nodiscard]] const void* kernel_image() noexcept;

}  // namespace gpu_digits
