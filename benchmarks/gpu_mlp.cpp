// SPDX-License-Identifier: BSL-1.0
#include "gpu_mlp.hpp"

#include <cstdlib>
#include <tuple>
#include <utility>

#include <muster/cuda/cublas.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/embed.hpp>
#include <muster/cuda/module.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/parallel/world.hpp>

#include "gpu_machine.hpp"
#include "python_peer.hpp"

MUSTER_EMBED_IMAGE(bench_gpu_kernels, MUSTER_CUDA_IMAGE);

namespace bench {
namespace {

using muster::cuda_device;
using muster::tensor;
using muster::transposed;

constexpr std::size_t width = 4096;
constexpr double rate = 1e-3;

struct mlp_kernels {
  explicit mlp_kernels(const cuda_device& on) : module(on, bench_gpu_kernels) {}

  muster::cuda_module module;
  muster::cuda_kernel rectify = module.kernel("rectify");
  muster::cuda_kernel rectify_back = module.kernel("rectify_back");
};

tensor square() { return tensor::empty(muster::dtype::bf16, {width, width}, gpu_0); }
tensor small_values() { return tensor::full<muster::bf16>({width, width}, muster::bf16(0.01F)); }

/// The gradients by both layers' weights, for a loss of half the squares of what comes out.
class two_layers {
public:
  explicit two_layers(cuda_device& gpu) : blas_(gpu.part<muster::cublas>()), kernels_(gpu.part<mlp_kernels>()) {}

  // What it writes, by the caller's tensors: as many as a step needs.
  struct places {
    tensor hidden = square();
    tensor out = square();
    tensor back = square();
    tensor by_w1 = square();
    tensor by_w2 = square();
  };

  void pass(const places& to, const tensor& x, const tensor& w1, const tensor& w2) const {
    const auto count = static_cast<long long>(width * width);
    multiply(blas_, x, w1, to.hidden);
    kernels_.rectify.launch(width * width, to.hidden.device_address(), count);
    multiply(blas_, to.hidden, w2, to.out);
    multiply(blas_, transposed(to.hidden), to.out, to.by_w2);
    multiply(blas_, to.out, transposed(w2), to.back);
    kernels_.rectify_back.launch(width * width, to.back.device_address(), to.hidden.device_address(), count);
    multiply(blas_, transposed(x), to.back, to.by_w1);
  }

private:
  muster::cublas& blas_;
  mlp_kernels& kernels_;
};

std::tuple<tensor, tensor> gradients(const tensor& x, const tensor& w1, const tensor& w2) {
  const auto gpu = cuda_device::open(gpu_0);
  const cuda_device::scope current(*gpu);
  const two_layers::places made;
  two_layers(*gpu).pass(made, x, w1, w2);
  return {made.by_w1, made.by_w2};
}

/// The data, and the weights, stay on the device.
class mlp_world {
public:
  void step() { call_(); }

private:
  muster::world world_{{.ranks = 1, .devices = first_gpu()}};
  muster::variable x_ = world_.replicate("x", small_values());
  muster::variable w1_ = world_.replicate("w1", small_values());
  muster::variable w2_ = world_.replicate("w2", small_values());
  decltype(world_.function(gradients, muster::replicas(x_, w1_, w2_),
                           muster::updates(muster::reduced_into(w1_, muster::avg, muster::sgd{}),
                                           muster::reduced_into(w2_, muster::avg, muster::sgd{})))) call_ =
      world_.function(gradients, muster::replicas(x_, w1_, w2_),
                      muster::updates(muster::reduced_into(w1_, muster::avg, muster::sgd{.rate = rate}),
                                      muster::reduced_into(w2_, muster::avg, muster::sgd{.rate = rate})));
};

side steps_of(mlp_world& world, const std::shared_ptr<cuda_device>& gpu) {
  return {.name = "a call of a world of one rank", .run = [&world, gpu](std::size_t count) {
            for (std::size_t index = 0; index < count; ++index) world.step();
            gpu->synchronize();
          }};
}

// The same kernels and products, and nothing else.
class bare_steps {
public:
  explicit bare_steps(std::shared_ptr<cuda_device> gpu) : gpu_(std::move(gpu)), network_(*gpu_) {}

  void run(std::size_t count) {
    const cuda_device::scope current(*gpu_);
    for (std::size_t index = 0; index < count; ++index) {
      network_.pass(places_, x_, w1_, w2_);
      muster::axpy(-rate, places_.by_w1, w1_);
      muster::axpy(-rate, places_.by_w2, w2_);
    }
    gpu_->synchronize();
  }

private:
  const std::shared_ptr<cuda_device> gpu_;
  two_layers network_;
  two_layers::places places_;
  tensor x_ = small_values().to(gpu_0);
  tensor w1_ = small_values().to(gpu_0);
  tensor w2_ = small_values().to(gpu_0);
};

python_program with_torch_on_gpu() {
  return {.setup =
              "import torch\n"
              "def square(): return torch.full((4096, 4096), 0.01, dtype=torch.bfloat16, device='cuda')\n"
              "x = square()\n"
              "layers = [torch.nn.Parameter(square()) for _ in range(2)]\n"
              "optimizer = torch.optim.SGD(layers, lr=1e-3)\n"
              "def step():\n"
              "    optimizer.zero_grad(set_to_none=True)\n"
              "    out = torch.relu(x @ layers[0]) @ layers[1]\n"
              "    (0.5 * out.square().sum()).backward()\n"
              "    optimizer.step()\n"
              "def steps(count):\n"
              "    for _ in range(count): step()\n"
              "    torch.cuda.synchronize()\n",
          .body = "steps(count)"};
}

}  // namespace

row gpu_mlp_step(const effort& how) {
  const auto gpu = cuda_device::open(gpu_0);
  mlp_world world;
  bare_steps bare(gpu);
  return compare("gpu_mlp_step", how, steps_of(world, gpu),
                 {.name = "the same products and kernels alone", .run = [&](std::size_t count) { bare.run(count); }});
}

row gpu_mlp_vs_torch(const effort& how) {
  const auto gpu = cuda_device::open(gpu_0);
  python_peer torch(with_torch_on_gpu());
  mlp_world world;
  return compare("gpu_mlp_vs_torch", how, steps_of(world, gpu),
                 {.name = "PyTorch", .run = [&](std::size_t count) { torch.run(count); }});
}

bool has_torch_on_gpu() {
  return std::system("/usr/bin/python3 -c 'import torch; torch.zeros(1, device=\"cuda\")' 2>/dev/null") == 0;
}

}  // namespace bench
