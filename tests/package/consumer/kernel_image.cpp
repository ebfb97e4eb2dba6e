// SPDX-License-Identifier: BSL-1.0
#include <muster/cuda/embed.hpp>

MUSTER_EMBED_IMAGE(consumer_image, MUSTER_CUDA_IMAGE);

const void* kernel_image() noexcept { return consumer_image; }
