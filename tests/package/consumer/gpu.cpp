// SPDX-License-Identifier: BSL-1.0
#include <iostream>

#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/module.hpp>
#include <muster/device/tensor.hpp>

const void* kernel_image() noexcept;

namespace {

struct kernels {
  explicit kernels(muster::cuda_device& on) : module(on, kernel_image()), add_one(module.kernel("add_one")) {}
  muster::cuda_module module;
  muster::cuda_kernel add_one;
};

}  // namespace

int main() {
  if (const auto problem = muster::cuda_driver::problem()) {
    std::cout << "no GPU: " << *problem << '\n';
    return 0;
  }
  const auto gpu = muster::cuda_device::open(muster::device::cuda(0));
  const auto x = muster::tensor::ones<float>({3}, gpu->where());
  gpu->part<kernels>().add_one.launch(x.size(), x.device_data<float>(), static_cast<long long>(x.size()));
  float sum = 0;
  for (const auto each : x.to(muster::device::cpu()).to_vector<float>()) sum += each;
  std::cout << "sum on the GPU: " << sum << '\n';
}
