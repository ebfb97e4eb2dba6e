// SPDX-License-Identifier: BSL-1.0
#include "tensor_pool_conformance.hpp"

#include "gpu_fixture.hpp"

namespace muster::test {

// All of the device's memory is free again after each of them.
struct on_gpu_for_a_time : on_gpu {
  using fixture = gives_memory_back<gpu_test>;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, TensorPoolConformance, on_gpu_for_a_time);

}  // namespace muster::test
