// SPDX-License-Identifier: BSL-1.0
#pragma once

// What CUDA adds to C++, as far as kernels use it, for a compiler that has none of it: a kernel is a function, and its
// threads run one after the other.

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(threads)

struct index_of_three {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

inline thread_local index_of_three gridDim;
inline thread_local index_of_three blockIdx;
inline thread_local index_of_three threadIdx;
