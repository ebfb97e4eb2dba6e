// SPDX-License-Identifier: BSL-1.0
// Stores, key-value stores and placement with tensors on a GPU, or on what stands in for one.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/cuda/cuda_device.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/safetensors.hpp>
#include <muster/device/sparse_rows.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/params.hpp>
#include <muster/pool/process.hpp>

#include "gpu_fixture.hpp"
#include "temporary_directory.hpp"

namespace muster::cuda_params_test {
namespace {

using testing::Each;

constexpr auto gpu = device::cuda(0);

tensor there(float value, std::size_t count = 1000) { return tensor::full<float>({count}, value, gpu); }

class CudaParams : public test::gpu_test {};

TEST_F(CudaParams, ATensorOfAGpuIsPushedAsACopyAndPulledToOne) {
  const store s{store_ticket(store_options())};
  for (const std::size_t count : {3U, 1000U}) {
    s.push("w", there(7, count));
    const auto found = s.pull<tensor>("w").value;
    EXPECT_TRUE(found.device().is_cpu());
    EXPECT_THAT(found.to_vector<float>(), Each(7));
    EXPECT_TRUE(equal(found.to(gpu), there(7, count)));
  }
}

TEST_F(CudaParams, WhatIsReadOnlyOnAGpuCannotBeWritten) {
  const auto whole = there(1).as_read_only();
  EXPECT_THROW(whole.fill(0.0F), error);
  EXPECT_THROW(scale(whole, 2), error);
  EXPECT_THROW(accumulate(whole, there(1)), error);
  EXPECT_THROW(whole.copy_from(there(2)), error);
  EXPECT_THROW(static_cast<void>(whole.device_data<float>()), error);
  EXPECT_NE(whole.device_data<const float>(), nullptr);
  EXPECT_TRUE(whole.slice(1, 2).is_read_only());
  EXPECT_THAT(whole.to(device::cpu()).to_vector<float>(), Each(1));
}

TEST_F(CudaParams, GradientsOfAGpuAreSummedAndApplied) {
  const kv_store kv(kv_kind::device);
  kv.init("w", there(1));
  kv.set_optimizer(sgd{.rate = 0.5, .momentum = 0.5});
  kv.push("w", {there(1), tensor::full<float>({1000}, 2), there(3)});
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(-2));
  const auto out = there(0);
  kv.pull("w", out);
  EXPECT_THAT(out.to_vector<float>(), Each(-2));
  kv.set_gradient_compression(gradient_compression::of("2bit", 0.5));
  kv.push("w", there(1));
  kv.set_gradient_compression({});
  kv.push_async("w", there(1), {.transfer = transfer::copy}).get();
  const std::vector<std::int64_t> rows{1};
  kv.init("e", tensor::zeros<float>({3, 2}));
  kv.push("e", sparse_rows{.indices = tensor::from(rows).to(gpu), .rows = tensor::ones<float>({1, 2}, gpu)});
  EXPECT_EQ(kv.pull("e").at<const float>(1, 1), -0.5F);
}

void push_from_a_gpu(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", there(0));
  kv.push("w", there(static_cast<float>(rank + 1)));
  kv.barrier();
  if (kv.pull("w").at<const float>(999) != 3) throw std::runtime_error("it is not the sum");
}

TEST_F(CudaParams, WorkersPushFromGpus) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2});
  std::vector<process> all;
  for (std::size_t rank = 0; rank < 2; ++rank) all.emplace_back(push_from_a_gpu, ticket, rank);
  for (const auto& each : all) {
    each.join();
    EXPECT_NO_THROW(each.watch());
  }
}

TEST_F(CudaParams, ModelsAreMovedToWhereTheyWereAssigned) {
  const std::vector<state_dict> models{{{"w", tensor::ones<float>({1000})}, {"b", tensor::full<int>({3}, 7)}},
                                       {{"w", tensor::ones<float>({10})}}};
  const auto found = assign(models);
  EXPECT_THAT(found.devices, testing::Contains(testing::Truly([](device each) { return !each.is_cpu(); })));
  const placement both{.devices = {gpu, device::cpu()}};
  const auto moved = both.move(models);
  EXPECT_EQ(moved[0].at("w").device(), gpu);
  EXPECT_THAT(moved[0].at("b").to_vector<int>(), Each(7));
  EXPECT_EQ(moved[1].at("w").data(), models[1].at("w").data()) << "it is there already";
  EXPECT_THAT(moved[0].to(device::cpu()).at("w").to_vector<float>(), Each(1));
  EXPECT_THROW(static_cast<void>(both.move({models[0]})), error);
}

TEST_F(CudaParams, ByDefaultAllGpusHaveRoom) {
  const auto rooms = rooms_here();
  EXPECT_EQ(rooms.size(), cuda_device::count() + 1);
  for (const auto& each : rooms) EXPECT_GT(each.free_bytes, 0U) << each.device;
  EXPECT_TRUE(rooms.back().device.is_cpu());
}

TEST_F(CudaParams, AFileTakesTensorsOfAGpu) {
  const test::temporary_directory where;
  const std::string path = where.path() / "model.safetensors";
  write_safetensors(path, {.tensors = {{"w", there(3)}}});
  EXPECT_THAT(read_safetensors(path).at("w").to_vector<float>(), Each(3));
}

}  // namespace
}  // namespace muster::cuda_params_test
