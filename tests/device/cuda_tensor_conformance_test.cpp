// SPDX-License-Identifier: BSL-1.0
#include "tensor_conformance.hpp"

#include "gpu_fixture.hpp"

namespace muster::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, TensorConformance, on_gpu);

}  // namespace muster::test
