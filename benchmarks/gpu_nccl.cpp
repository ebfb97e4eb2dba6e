// SPDX-License-Identifier: BSL-1.0
#include "gpu_nccl.hpp"

#include <memory>
#include <string>

#include <muster/collectives/group.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/tensor.hpp>
#include <muster/nccl/nccl_library.hpp>

#include "gpu_machine.hpp"

namespace bench {
namespace {

using muster::cuda_device;
using muster::tensor;

constexpr std::size_t count = (std::size_t{256} << 20U) / sizeof(float);

/// A communicator of one rank, and what it sums.
class bare_nccl {
public:
  explicit bare_nccl(std::shared_ptr<cuda_device> gpu) : gpu_(std::move(gpu)) {
    const cuda_device::scope current(*gpu_);
    ncclUniqueId id{};
    nccl_->unique_id(&id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    nccl_->comm_init(&communicator_, 1, id, 0, &config);
  }
  bare_nccl(const bare_nccl&) = delete;
  bare_nccl& operator=(const bare_nccl&) = delete;
  ~bare_nccl() { static_cast<void>(nccl_->comm_destroy.attempt(communicator_)); }

  void run(std::size_t times, const tensor& in, const tensor& out) {
    const cuda_device::scope current(*gpu_);
    for (std::size_t index = 0; index < times; ++index) {
      nccl_->all_reduce(address(in), address(out), count, ncclFloat32, ncclSum, communicator_,
                        gpu_->compute().handle());
      gpu_->synchronize();
    }
  }

private:
  static float* address(const tensor& of) {
    return reinterpret_cast<float*>(of.device_address());  // NOLINT(performance-no-int-to-ptr)
  }

  const std::shared_ptr<cuda_device> gpu_;
  const std::shared_ptr<const muster::nccl_library> nccl_ = muster::nccl_library::load();
  ncclComm_t communicator_ = nullptr;
};

row all_reduce_of_one(const effort& how, const char* name, const tensor& in, const tensor& out) {
  bare_nccl bare(cuda_device::open(gpu_0));
  const muster::group_ticket ticket(1);
  muster::group group(ticket, 0);
  const side ours{.name = "all_reduce of a group of one", .run = [&](std::size_t times) {
                    for (std::size_t index = 0; index < times; ++index) group.all_reduce(in, out);
                  }};
  return compare(name, how, ours,
                 {.name = "ncclAllReduce", .run = [&](std::size_t times) { bare.run(times, in, out); }});
}

row between_two_tensors(const effort& how) {
  const auto in = tensor::ones<float>({count}, gpu_0);
  return all_reduce_of_one(how, "nccl_allreduce_1rank", in, in.clone());
}

row in_place(const effort& how) {
  const auto values = tensor::ones<float>({count}, gpu_0);
  return all_reduce_of_one(how, "nccl_in_place_1rank", values, values);
}

std::string why_no_nccl() {
  if (auto why = why_no_driver(); !why.empty()) return why;
  if (const auto problem = muster::nccl_library::problem()) return "peer missing: " + *problem;
  return {};
}

}  // namespace

std::vector<workload> gpu_collectives() {
  return {{.name = "nccl_allreduce_1rank", .run = between_two_tensors, .hindrance = why_no_nccl},
          {.name = "nccl_in_place_1rank", .run = in_place, .hindrance = why_no_nccl}};
}

}  // namespace bench
