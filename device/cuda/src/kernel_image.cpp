// SPDX-License-Identifier: BSL-1.0
#include "kernel_image.hpp"

#include <muster/cuda/embed.hpp>

MUSTER_EMBED_IMAGE(muster_cuda_image, MUSTER_CUDA_IMAGE);

namespace muster::detail {

const std::byte* kernel_image() noexcept { return muster_cuda_image; }

}  // namespace muster::detail
