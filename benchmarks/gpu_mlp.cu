// SPDX-License-Identifier: BSL-1.0
// What a network of two layers needs besides products of matrices, in bf16: one thread for each element.
#include <cuda_bf16.h>

namespace {

__device__ long long thread_number() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }

}  // namespace

/// x ← max(0, x).
extern "C" __global__ void rectify(__nv_bfloat16* x, long long count) {
  const auto at = thread_number();
  if (at < count && !(__bfloat162float(x[at]) > 0)) x[at] = __float2bfloat16(0);
}

/// gradient ← gradient where `rectified` is above 0, else 0.
extern "C" __global__ void rectify_back(__nv_bfloat16* gradient, const __nv_bfloat16* rectified, long long count) {
  const auto at = thread_number();
  if (at < count && !(__bfloat162float(rectified[at]) > 0)) gradient[at] = __float2bfloat16(0);
}
