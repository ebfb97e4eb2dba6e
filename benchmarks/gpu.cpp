// SPDX-License-Identifier: BSL-1.0
// The figures of muster on one GPU, beside the driver's own calls. Workloads:
//
//   gpu_tensor_ref            a call with another process's tensor of 4 GiB on the device (of half of what is free, if
//                             that is less), which reads an element of it ÷ a call that reads one of its process's own
//   gpu_tensor_vs_torch       a call with another's tensor of 4 GiB (of a quarter of what is free, if that is less) ÷
//                             one of torch.multiprocessing, by cudaIpc
//   h2d, d2h                  256 MiB from a pinned shared tensor to the device and back, bytes per second ÷ a copy by
//                             the driver, of pinned pages too
//   gpu_accumulate_f32        256 MiB added to 256 MiB, bytes read and written per second ÷ a copy on the device
//   gpu_call_empty            a call of a world of one rank that fills a number on the device ÷ the same kernel
//                             launched and waited for by the driver's calls alone
//   gpu_mlp_step              a step of learning by a world of one rank: two layers, batch and width 4096, bf16, by
//                             cuBLAS ÷ the same products and kernels alone
//   gpu_mlp_vs_torch          the same ÷ PyTorch
//   nccl_allreduce_1rank      256 MiB of f32 summed into another tensor, in a group of one rank ÷ ncclAllReduce of one
//   nccl_in_place_1rank       likewise, into the same tensor, which moves nothing
//
// Those with a peer are medians over rounds in which each side has a turn.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/driver.hpp>
#include <muster/cuda/pinned_memory.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/parallel/world.hpp>
#include <muster/pool/pool.hpp>
#include <muster/process/init.hpp>

#include "bench_program.hpp"
#include "gpu_machine.hpp"
#include "gpu_mlp.hpp"
#include "gpu_nccl.hpp"
#include "gpu_raw_fill.hpp"
#include "python_peer.hpp"

namespace bench {
namespace {

using muster::cuda_device;
using muster::device;
using muster::tensor;

constexpr std::size_t pass_bytes = std::size_t{256} << 20U;

// ---- by reference

std::size_t free_bytes() { return cuda_device::open(gpu_0)->memory().free_bytes; }
tensor made_there(std::size_t bytes) { return tensor::zeros(muster::dtype::u8, {bytes}, gpu_0); }

int first_of(const tensor& given) { return given.slice(0, 1).to(device::cpu()).span<std::uint8_t>()[0]; }
int first_of_own(int /*unused*/) {
  static const tensor own = made_there(1);
  return first_of(own);
}

/// A tensor of one worker's, at most 4 GiB and that part of what is free, and another worker.
class lent_tensor {
public:
  explicit lent_tensor(std::size_t part)
      : bytes_(std::min(std::size_t{4} << 30U, pool_.on(0).apply(free_bytes) / part)),
        there_(pool_.on(0).apply(made_there, bytes_)) {}

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Calls of that other worker.
  [[nodiscard]] side calls_with_it() const {
    return {.name = "apply with a tensor", .run = [this](std::size_t count) {
              for (std::size_t index = 0; index < count; ++index) {
                if (pool_.on(1).apply(first_of, there_) != 0) std::abort();
              }
            }};
  }
  [[nodiscard]] side calls_without() const {
    return {.name = "apply, of its own", .run = [this](std::size_t count) {
              for (std::size_t index = 0; index < count; ++index) {
                if (pool_.on(1).apply(first_of_own, 0) != 0) std::abort();
              }
            }};
  }

private:
  const muster::pool pool_{muster::pool_options{.workers = 2, .devices = first_gpu()}};
  const std::size_t bytes_;
  const tensor there_;
};

row tensor_ref(const effort& how) {
  const lent_tensor lent(2);
  return compare("gpu_tensor_ref", how, lent.calls_with_it(), lent.calls_without());
}

// A worker of its own reads the first of so many bytes on the device; `int` is what any process can be told to call.
python_program with_torch_by_ipc(std::size_t bytes) {
  return {.setup =
              "import torch, torch.multiprocessing\n"
              "pool = torch.multiprocessing.get_context('spawn').Pool(1)\n"
              "t = torch.zeros(" +
              std::to_string(bytes) + ", dtype=torch.uint8, device='cuda')\n",
          .body = "for _ in range(count): assert pool.apply(int, (t[0],)) == 0"};
}

row tensor_vs_torch(const effort& how) {
  const lent_tensor lent(4);
  python_peer torch(with_torch_by_ipc(lent.bytes()));
  return compare("gpu_tensor_vs_torch", how, lent.calls_with_it(),
                 {.name = "torch.multiprocessing, by cudaIpc", .run = [&](std::size_t count) { torch.run(count); }});
}

// ---- copies

/// Pages that the driver knows, and may read and write by itself.
class registered_pages {
public:
  explicit registered_pages(std::shared_ptr<cuda_device> on) : on_(std::move(on)), bytes_(pass_bytes, 1) {
    const cuda_device::scope current(*on_);
    on_->driver().host_register(bytes_.data(), bytes_.size(), 0);
  }
  registered_pages(const registered_pages&) = delete;
  registered_pages& operator=(const registered_pages&) = delete;
  ~registered_pages() {
    const cuda_device::scope current(*on_);
    static_cast<void>(on_->driver().host_unregister.attempt(bytes_.data()));
  }

  [[nodiscard]] CUdeviceptr address() { return reinterpret_cast<CUdeviceptr>(bytes_.data()); }

private:
  const std::shared_ptr<cuda_device> on_;
  std::vector<std::uint8_t> bytes_;
};

side driver_copies(cuda_device& on, CUdeviceptr to, CUdeviceptr from) {
  return {.name = "cuMemcpyAsync, registered pages", .run = [&on, to, from](std::size_t count) {
            const cuda_device::scope current(on);
            for (std::size_t index = 0; index < count; ++index) {
              on.driver().copy_async(to, from, pass_bytes, on.compute().handle());
              on.compute().synchronize();
            }
          }};
}

side tensor_copies(const tensor& to, const tensor& from) {
  return {.name = "copy_from", .run = [&to, &from](std::size_t count) {
            for (std::size_t index = 0; index < count; ++index) to.copy_from(from);
          }};
}

row copy_to_device(const effort& how) {
  const auto gpu = cuda_device::open(gpu_0);
  const auto here = tensor::ones<std::uint8_t>({pass_bytes});
  const muster::pinned_memory pinned(*gpu, here);
  const auto there = tensor::zeros(muster::dtype::u8, {pass_bytes}, gpu_0);
  registered_pages pages(gpu);
  const auto peer = driver_copies(*gpu, there.device_address(), pages.address());
  return as_rate(compare("h2d", how, tensor_copies(there, here), peer), pass_bytes);
}

row copy_to_host(const effort& how) {
  const auto gpu = cuda_device::open(gpu_0);
  const auto here = tensor::ones<std::uint8_t>({pass_bytes});
  const muster::pinned_memory pinned(*gpu, here);
  const auto there = tensor::zeros(muster::dtype::u8, {pass_bytes}, gpu_0);
  registered_pages pages(gpu);
  const auto peer = driver_copies(*gpu, pages.address(), there.device_address());
  return as_rate(compare("d2h", how, tensor_copies(here, there), peer), pass_bytes);
}

// ---- kernels

// A pass reads both and writes one; a copy reads one and writes one.
row accumulate(const effort& how) {
  const auto gpu = cuda_device::open(gpu_0);
  const auto into = tensor::zeros(muster::dtype::f32, {pass_bytes / sizeof(float)}, gpu_0);
  const auto from = into.clone();
  const side ours{.name = "accumulate", .run = [&](std::size_t count) {
                    for (std::size_t pass = 0; pass < 2 * count; ++pass) muster::accumulate(into, from);
                    gpu->synchronize();
                  }};
  const side peer{.name = "copies on the device", .run = [&](std::size_t count) {
                    const cuda_device::scope current(*gpu);
                    for (std::size_t pass = 0; pass < 3 * count; ++pass) {
                      gpu->driver().copy_async(into.device_address(), from.device_address(), pass_bytes,
                                               gpu->compute().handle());
                    }
                    gpu->synchronize();
                  }};
  return as_rate(compare("gpu_accumulate_f32", how, ours, peer), 6 * static_cast<double>(pass_bytes));
}

// ---- data-parallel calls

// What it has launched, the call waits for.
void fill_number(const tensor& number) { number.fill(1.0F); }

row call_empty(const effort& how) {
  const auto gpu = cuda_device::open(gpu_0);
  muster::world world({.ranks = 1, .devices = first_gpu()});
  const auto weights = world.replicate("number", tensor::zeros<float>({1}));
  const auto call = world.function(fill_number, muster::replicas(weights));
  const side ours{.name = "call of a kernel, 1 rank", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) call();
                  }};
  raw_fill raw(gpu, tensor::zeros(muster::dtype::f32, {1}, gpu_0), 1.0F);
  const side peer{.name = "cuLaunchKernel, cuStreamSynchronize", .run = [&](std::size_t count) {
                    const cuda_device::scope current(*gpu);
                    for (std::size_t index = 0; index < count; ++index) raw.run();
                  }};
  return compare("gpu_call_empty", how, ours, peer);
}

// ---- the program

workload on_gpu(const std::string& name, row (*run)(const effort&), std::string (*hindrance)() = why_no_driver) {
  return {.name = name, .run = run, .hindrance = hindrance};
}

std::string why_not_beside_torch() {
  const auto why = why_no_gpu();
  if (!why.empty() || has_torch_on_gpu()) return why;
  return "peer missing: /usr/bin/python3 has no torch that can use a GPU";
}

std::vector<workload> all_workloads() {
  std::vector<workload> all = {
      on_gpu("gpu_tensor_ref", tensor_ref, why_no_gpu),
      {.name = "gpu_tensor_vs_torch", .run = tensor_vs_torch, .hindrance = why_not_beside_torch},
      on_gpu("h2d", copy_to_device),
      on_gpu("d2h", copy_to_host),
      on_gpu("gpu_accumulate_f32", accumulate),
      on_gpu("gpu_call_empty", call_empty, why_no_gpu),
      on_gpu("gpu_mlp_step", gpu_mlp_step, why_no_gpu),
      {.name = "gpu_mlp_vs_torch", .run = gpu_mlp_vs_torch, .hindrance = why_not_beside_torch}};
  const auto others = gpu_collectives();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return bench::run_program(argc, argv, "Measures muster on a GPU beside the driver's own calls, in turns.",
                            bench::all_workloads());
}
