// SPDX-License-Identifier: BSL-1.0
#include "rule_kernels.ipp"

namespace muster::detail {

rule_kernel baseline_rule_kernel(dtype type) { return find_kernel(type); }

}  // namespace muster::detail
