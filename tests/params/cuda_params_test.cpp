// SPDX-License-Identifier: BSL-1.0
// Stores, key-value stores and placement with tensors on a GPU, or on what stands in for one.
#include <array>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <random>
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
  EXPECT_THAT(kv.pull("w").to(device::cpu()).to_vector<float>(), Each(-2));
  const auto out = there(0);
  kv.pull("w", out);
  EXPECT_THAT(out.to(device::cpu()).to_vector<float>(), Each(-2));
  kv.set_gradient_compression(gradient_compression::of("2bit", 0.5));
  kv.push("w", there(1));
  kv.set_gradient_compression({});
  kv.push_async("w", there(1), {.transfer = transfer::copy}).get();
  const std::vector<std::int64_t> rows{1};
  kv.init("e", tensor::zeros<float>({3, 2}));
  kv.push("e", sparse_rows{.indices = tensor::from(rows).to(gpu), .rows = tensor::ones<float>({1, 2}, gpu)});
  EXPECT_EQ(kv.pull("e").at<const float>(1, 1), -0.5F);
}

// ---- values that lie on a GPU

TEST_F(CudaParams, ValuesOfKindDeviceStayOnTheirGpu) {
  const kv_store kv(kv_kind::device);
  kv.init({"w", "b"}, {there(1), tensor::ones<float>({3})});
  kv.push("w", there(2));
  const auto found = kv.pull("w");
  EXPECT_EQ(found.device(), gpu);
  EXPECT_TRUE(found.is_read_only());
  EXPECT_TRUE(equal(found, there(2)));
  kv.push("w", {there(3), tensor::full<float>({1000}, 4)});
  EXPECT_TRUE(equal(found, there(2))) << "a version has changed";
  EXPECT_TRUE(equal(kv.pull_async("w").get(), there(7)));
  const auto both = kv.pull({"w", "b"});
  EXPECT_TRUE(equal(both[0], there(7)));
  EXPECT_TRUE(both[1].device().is_cpu());
  EXPECT_THAT(kv.values().pull<tensor>("w").value.to_vector<float>(), Each(7));
  EXPECT_EQ(kv.push_pull("w", there(5)).device(), gpu);
  EXPECT_THROW(kv.push("w", there(1, 3)), error);
}

// With the bits that the host gives.
TEST_F(CudaParams, RulesOfKindDeviceRunOnTheGpu) {
  for (const update_rule& rule : {update_rule(sgd{.rate = 0.5, .momentum = 0.9}), update_rule(adam{.rate = 0.1})}) {
    const kv_store on_gpu(kv_kind::device);
    const kv_store on_host(kv_kind::local);
    on_gpu.init("w", there(1));
    on_host.init("w", tensor::ones<float>({1000}));
    for (const auto* const each : {&on_gpu, &on_host}) each->set_optimizer(rule);
    for (int step = 1; step <= 5; ++step) {
      on_gpu.push("w", there(0.3F * static_cast<float>(step)));
      on_host.push("w", tensor::full<float>({1000}, 0.3F * static_cast<float>(step)));
    }
    EXPECT_TRUE(equal(on_gpu.pull("w").to(device::cpu()), on_host.pull("w"))) << rule.name();
  }
}

TEST_F(CudaParams, WhatIsPushedIntoTheStoreReplacesWhatLiesOnAGpu) {
  const kv_store kv(kv_kind::device);
  kv.init("w", there(1));
  kv.set_optimizer(sgd{.rate = 1});
  kv.push("w", there(1));
  kv.values().push("w", tensor::full<float>({1000}, 10));
  EXPECT_TRUE(equal(kv.pull("w"), there(10)));
  kv.push("w", there(1));
  EXPECT_TRUE(equal(kv.pull("w"), there(9)));
  kv.values().erase("w");
  EXPECT_THROW(static_cast<void>(kv.pull("w")), error);
  EXPECT_THROW(kv.push("w", there(1)), error);
}

TEST_F(CudaParams, RowsBitsAndUpdatersOfKindDeviceMeetTheValueOnItsGpu) {
  const kv_store kv(kv_kind::device);
  kv.init("e", tensor::zeros<float>({3, 2}, gpu));
  const std::vector<std::int64_t> rows{1};
  kv.set_optimizer(sgd{.rate = 1, .momentum = 0.5});
  for (int step = 0; step < 2; ++step) {
    kv.push("e", sparse_rows{.indices = tensor::from(rows), .rows = tensor::ones<float>({1, 2}, gpu)});
  }
  EXPECT_THAT(kv.pull("e").to(device::cpu()).to_vector<float>(), testing::ElementsAre(0, 0, -2.5, -2.5, 0, 0));
  EXPECT_THAT(kv.row_sparse_pull("e", rows).rows.to_vector<float>(), Each(-2.5));
  kv.set_optimizer(assign_rule());
  kv.set_gradient_compression(gradient_compression::of("2bit", 0.5));
  kv.push("e", tensor::ones<float>({3, 2}, gpu));
  EXPECT_TRUE(equal(kv.pull("e"), tensor::full<float>({3, 2}, 0.5, gpu)));
  kv.set_gradient_compression({});
  kv.set_updater([](const store_key&, const tensor& input, tensor& stored) { axpy(2.0, input, stored); });
  kv.push("e", tensor::ones<float>({3, 2}, gpu));
  EXPECT_TRUE(equal(kv.pull("e"), tensor::full<float>({3, 2}, 2.5, gpu)));
  kv.set_updater([](const store_key&, const tensor& input, tensor& stored) { stored = input; });
  kv.push("e", tensor::ones<float>({3, 2}, gpu));
  EXPECT_TRUE(equal(kv.pull("e"), tensor::ones<float>({3, 2}, gpu)));
}

/// One on a GPU and one on the host, to which the same is done.
struct two_stores {
  void push(const tensor& value) const {
    on_gpu.push("w", value.to(gpu));
    on_host.push("w", value);
  }
  template <class F>
  void both(const F& call) const {
    call(on_gpu);
    call(on_host);
  }
  void expect_alike(const std::string& after) const {
    ASSERT_TRUE(equal(on_gpu.pull("w").to(device::cpu()), on_host.pull("w"))) << after;
  }

  kv_store on_gpu{kv_kind::device};
  kv_store on_host{kv_kind::local};
};

TEST_F(CudaParams, AnyCallsMakeOfKindDeviceWhatTheyMakeOfKindLocal) {
  const test::temporary_directory where;
  const std::string path = where.path() / "kv.safetensors";
  const std::vector<update_rule> rules{sgd{.rate = 0.5}, sgd{.rate = 0.25, .momentum = 0.5}, adam{.rate = 0.1},
                                       adagrad{.rate = 0.2}};
  const two_stores stores;
  stores.on_gpu.init("w", tensor::ones<float>({600, 2}, gpu));
  stores.on_host.init("w", tensor::ones<float>({600, 2}));
  const std::array insides{stores.on_gpu.values(), stores.on_host.values()};
  std::mt19937 random(7);
  std::string set = "nothing";
  std::string saved;
  for (int each = 0; each < 400; ++each) {
    const auto value = 0.01F * static_cast<float>(random() % 100);
    switch (random() % 9) {
      case 0: {
        const auto& rule = rules[random() % rules.size()];
        set = std::string(rule.name()) + std::to_string(rule.state_count());
        stores.both([&](const kv_store& kv) { kv.set_optimizer(rule); });
        break;
      }
      case 1: {
        std::vector<std::int64_t> rows(1 + random() % 550);
        std::iota(rows.begin(), rows.end(), 7);
        const auto some = sparse_rows::of(rows, tensor::full<float>({rows.size(), 2}, value));
        stores.both([&](const kv_store& kv) { kv.push("w", some); });
        stores.both([&](const kv_store& kv) { EXPECT_EQ(kv.row_sparse_pull("w", rows).count(), rows.size()); });
        break;
      }
      case 2:
        for (const auto& inside : insides) inside.push("w", tensor::full<float>({600, 2}, value));
        break;
      case 3: stores.both([](const kv_store& kv) { EXPECT_TRUE(kv.values().contains("w")); }); break;
      case 4:
        saved = set;
        stores.on_gpu.save(path + "g");
        stores.on_host.save(path + "h");
        break;
      case 5:
        if (saved != set) break;  // it may have states of a rule that is not set
        stores.on_gpu.load(path + "g");
        stores.on_host.load(path + "h");
        break;
      default: stores.push(tensor::full<float>({600, 2}, value));
    }
    stores.expect_alike("step " + std::to_string(each));
  }
}

TEST_F(CudaParams, AnUpdaterThatLooksIntoTheStoreRunsOnce) {
  const kv_store kv(kv_kind::device);
  kv.init("w", there(1));
  kv.push("w", there(2));
  static std::atomic<const kv_store*> here;
  static std::atomic<int> runs;
  here = &kv;
  runs = 0;
  kv.set_updater([](const store_key&, const tensor& input, tensor& stored) {
    EXPECT_TRUE(here.load()->values().contains("w"));
    ++runs;
    accumulate(stored, input);
  });
  kv.push("w", there(1));
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(equal(kv.pull("w"), there(3)));
}

TEST_F(CudaParams, AFileHasWhatLiesOnAGpuAndGoesOnThere) {
  const test::temporary_directory where;
  const std::string path = where.path() / "kv.safetensors";
  const auto rule = sgd{.rate = 0.5, .momentum = 0.5};
  const kv_store first(kv_kind::device);
  first.init("w", there(0));
  first.set_optimizer(rule);
  first.push("w", there(1));
  first.push("w", there(1));
  first.save(path);
  first.push("w", there(1));
  const auto wanted = first.pull("w");
  const kv_store other(kv_kind::device);
  other.init("w", there(100));
  other.set_optimizer(rule);
  other.push("w", there(3));
  other.load(path);
  other.push("w", there(1));
  EXPECT_TRUE(equal(other.pull("w"), wanted)) << "with what the rule remembers";
  first.load(path);
  first.push("w", there(1));
  EXPECT_TRUE(equal(first.pull("w"), wanted));
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
