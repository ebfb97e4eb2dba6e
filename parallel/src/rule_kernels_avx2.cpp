// SPDX-License-Identifier: BSL-1.0
// Compiled for AVX2 and F16C where the processor can have it: see CMakeLists.txt. Elsewhere nobody asks for these.
#if defined(__x86_64__)
#include "rule_kernels.ipp"
#else
#include "rule_kernel.hpp"
#endif

namespace muster::detail {

#if defined(__x86_64__)
rule_kernel avx2_rule_kernel(dtype type) { return find_kernel(type); }
#else
rule_kernel avx2_rule_kernel(dtype) { return nullptr; }
#endif

}  // namespace muster::detail
