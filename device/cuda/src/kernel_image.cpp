// SPDX-License-Identifier: BSL-1.0
#include "kernel_image.hpp"

// The file is put in by the assembler, which is fast whatever its size, and is the same with GCC and Clang.
__asm__(R"(
  .pushsection .rodata.muster_cuda_image, "a", @progbits
  .balign 16
  .hidden muster_cuda_image
  .global muster_cuda_image
  .type muster_cuda_image, @object
muster_cuda_image:
  .incbin ")" MUSTER_CUDA_IMAGE R"("
  .byte 0
  .size muster_cuda_image, . - muster_cuda_image
  .popsection
)");

extern "C" [[gnu::visibility("hidden")]] const std::byte muster_cuda_image[];

namespace muster::detail {

const std::byte* kernel_image() noexcept { return muster_cuda_image; }

}  // namespace muster::detail
