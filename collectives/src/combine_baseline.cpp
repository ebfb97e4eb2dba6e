// SPDX-License-Identifier: BSL-1.0
#include "combine_kernels.ipp"

namespace muster::detail {

combine_kernel baseline_kernel(reduction_op op, dtype type) { return find_kernel(op, type); }

}  // namespace muster::detail
