// SPDX-License-Identifier: BSL-1.0
/// x ← x + 1.
extern "C" __global__ void add_one(float* x, long long count) {
  const auto at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < count) x[at] += 1;
}
