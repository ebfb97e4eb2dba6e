// SPDX-License-Identifier: BSL-1.0
// Compiled for AVX2 and F16C where the processor can have them: see CMakeLists.txt. Elsewhere nobody asks for these.
#if defined(__x86_64__)
#include "combine_kernels.ipp"
#else
#include "combine_kernel.hpp"
#endif

namespace muster::detail {

#if defined(__x86_64__)
combine_kernel avx2_kernel(reduction_op op, dtype type) { return find_kernel(op, type); }
#else
combine_kernel avx2_kernel(reduction_op, dtype) { return nullptr; }
#endif

}  // namespace muster::detail
