// SPDX-License-Identifier: BSL-1.0
#pragma once

// Puts compiled kernels into a program, so that no file has to be found at run time.
//
//     MUSTER_EMBED_IMAGE(my_image, "/build/kernels.fatbin")     // once, outside of functions
//     muster::cuda_module module(*gpu, my_image);
//
// In CMake, muster_cuda_image(target kernels.cu image.cpp) compiles the kernels, and defines MUSTER_CUDA_IMAGE in
// image.cpp as the file's name.
//
// Thread safety: constant data of the program; safe.

#include <cstddef>

#include <muster/base/requirements.hpp>

/// Defines `name` as the bytes of a file. The assembler reads it, which is fast whatever its size. The name is one for
/// the whole program.
#define MUSTER_EMBED_IMAGE(name, file)       \
  __asm__(".pushsection .rodata." #name      \
          ", \"a\", @progbits\n"             \
          ".balign 16\n"                     \
          ".hidden " #name                   \
          "\n"                               \
          ".global " #name                   \
          "\n"                               \
          ".type " #name ", @object\n" #name \
          ":\n"                              \
          ".incbin \"" file                  \
          "\"\n"                             \
          ".byte 0\n"                        \
          ".size " #name ", . - " #name      \
          "\n"                               \
          ".popsection\n");                  \
  extern "C" [[gnu::visibility("hidden")]] const std::byte name[]
