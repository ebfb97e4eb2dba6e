// SPDX-License-Identifier: BSL-1.0
// The kernels of muster::cuda, compiled for the host.
#include "kernel_shim.hpp"

#include <cstddef>
#include <cstring>

#include "../../device/cuda/kernels/kernels.cu"
#include "machine.hpp"

namespace fake_cuda {

namespace {

template <class Arguments, void (*Kernel)(Arguments)>
void run(const std::byte* argument, const unsigned (&blocks)[3], const unsigned (&threads)[3]) {
  Arguments given;
  std::memcpy(&given, argument, sizeof(given));
  gridDim = {blocks[0], blocks[1], blocks[2]};
  for (blockIdx.x = 0; blockIdx.x < blocks[0]; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < threads[0]; ++threadIdx.x) Kernel(given);
  }
}

#define MUSTER_KERNEL_ENTRY(name, body, arguments) \
  {"muster_" #name, sizeof(muster::detail::arguments), run<muster::detail::arguments, muster_##name>},

constexpr kernel table[] = {MUSTER_CUDA_KERNELS(MUSTER_KERNEL_ENTRY){}};

#undef MUSTER_KERNEL_ENTRY

}  // namespace

const kernel* all_kernels() { return table; }

}  // namespace fake_cuda
