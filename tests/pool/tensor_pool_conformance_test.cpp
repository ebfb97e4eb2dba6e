// SPDX-License-Identifier: BSL-1.0
#include "tensor_pool_conformance.hpp"

#include "places.hpp"

namespace muster::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, TensorPoolConformance, on_host);

}  // namespace muster::test
