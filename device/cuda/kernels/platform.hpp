// SPDX-License-Identifier: BSL-1.0
#pragma once

// What kernels are written with, beside what nvcc knows by itself. Tests compile the same sources for the host, behind
// definitions of __global__, __device__, threadIdx and so on: so kernels use neither barriers nor shared memory.

#include <cstdint>

#if defined(__CUDACC__)
#define MUSTER_UNROLL _Pragma("unroll")
#else
#define MUSTER_UNROLL
#endif

namespace muster::detail {

/// Of every block, in all kernels.
inline constexpr unsigned kernel_threads = 256;

/// What a thread loads before it stores anything, so that enough is on its way.
inline constexpr unsigned kernel_loads = 4;

}  // namespace muster::detail
