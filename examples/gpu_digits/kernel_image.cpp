// SPDX-License-Identifier: BSL-1.0
#include "kernel_image.hpp"

#include <muster/cuda/embed.hpp>

MUSTER_EMBED_IMAGE(gpu_digits_image, MUSTER_CUDA_IMAGE);

namespace gpu_digits {

const void* kernel_image() noexcept { return gpu_digits_image; }

}  // namespace gpu_digits
