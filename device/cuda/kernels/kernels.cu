// SPDX-License-Identifier: BSL-1.0
// All kernels, as the driver finds them by name.
#include "convert_kernels.hpp"
#include "element_kernels.hpp"
#include "kernel_names.hpp"
#include "reduce_kernels.hpp"
#include "rule_kernels.hpp"

#define MUSTER_CUDA_KERNEL(name, body, arguments)                              \
  extern "C" __global__ void __launch_bounds__(muster::detail::kernel_threads) \
      muster_##name(const __grid_constant__ muster::detail::arguments given) { \
    using namespace muster::detail;                                            \
    body(given);                                                               \
  }

MUSTER_CUDA_KERNELS(MUSTER_CUDA_KERNEL)

#undef MUSTER_CUDA_KERNEL
