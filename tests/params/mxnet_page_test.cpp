// SPDX-License-Identifier: BSL-1.0
// Every line of code of docs/coming-from-mxnet.md, as it stands there; and that none is missing here.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/arithmetic.hpp>
#include <muster/device/sparse_rows.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params.hpp>
#include <muster/pool/process.hpp>

#include "page.hpp"
#include "temporary_directory.hpp"

namespace muster::mxnet_page_test {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;

const tensor_shape shape({2, 3});
tensor full(float value) { return tensor::full<float>(shape, value); }

void work(const muster::kv_ticket& ticket, std::size_t rank) {
  const muster::kv_store kv(ticket, rank);
  if (rank >= kv.size()) return kv.run();
  const auto a = full(static_cast<float>(rank + 1));
  kv.init(3, a);
  kv.push(3, a);
  if (kv.pull(3).at<const float>(0, 0) != 3) throw std::runtime_error("not the sum");
  kv.barrier();
}

TEST(MxnetPage, MakingAStore) {
  const muster::kv_store kv(muster::kv_kind::local);
  const muster::kv_store of_devices(muster::kv_kind::device);
  EXPECT_EQ(to_string(kv.kind()), "local");
  EXPECT_TRUE(of_devices.values().keys().empty());
  EXPECT_EQ(to_string(of_devices.kind()), "device");
  const muster::kv_ticket ticket(muster::kv_kind::sync, {.workers = 2});
  const muster::kv_ticket with_spares(muster::kv_kind::sync, {.workers = 2, .spare_owners = 1});
  const muster::kv_ticket alone(muster::kv_kind::async, {.workers = 2, .staleness = 4});
  EXPECT_EQ(alone.options().staleness, 4U);
  EXPECT_EQ(muster::kv_kind_of("dist_device_sync"), muster::kv_kind::sync);
  EXPECT_EQ(std::pair(kv.rank(), kv.size()), std::pair(std::size_t{0}, std::size_t{1}));
  EXPECT_THAT(kv.living(), ElementsAre(0));
  for (const auto* each : {&ticket, &with_spares}) {
    const auto all = each->options().workers + each->options().spare_owners;
    std::vector<process> workers;
    for (std::size_t rank = 0; rank < all; ++rank) workers.emplace_back(work, *each, rank);
    for (const auto& worker : workers) {
      worker.join();
      EXPECT_NO_THROW(worker.watch());
    }
  }
}

TEST(MxnetPage, Values) {
  const muster::kv_store kv(muster::kv_kind::local);
  const auto a = full(1);
  const auto b = full(2);
  kv.init(3, a);
  kv.init({5, 7}, {a, b});
  kv.push(3, a);
  kv.push(3, {a, b});
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(3));
  kv.push({5, 7}, {a, b});
  auto pushed = kv.push_async(3, a, {.priority = -1});
  pushed.get();
  kv.pull(3, b);
  EXPECT_THAT(b.to_vector<float>(), Each(1));
  tensor now = kv.pull(3);
  const float first = now.at<const float>(0, 0);
  EXPECT_EQ(first, 1);
  kv.pull(3, {a, b});
  auto both = kv.pull({5, 7});
  EXPECT_EQ(both[1].at<const float>(0, 0), 2);
  auto pulled = kv.pull_async(3, {.priority = 1});
  EXPECT_THAT(pulled.get().to_vector<float>(), Each(1));
  tensor made = kv.push_pull(3, a);
  EXPECT_EQ(made.to_vector<float>(), now.to_vector<float>());
  tensor begin = kv.broadcast("w", a);
  EXPECT_EQ(begin.to_vector<float>(), a.to_vector<float>());
}

TEST(MxnetPage, Rows) {
  const muster::kv_store kv(muster::kv_kind::local);
  kv.init("e", full(1));
  const std::vector<std::int64_t> rows{1};
  const auto values = tensor::full<float>({1, 3}, 7);
  kv.push("e", muster::sparse_rows::of(rows, values));
  muster::sparse_rows some = kv.row_sparse_pull("e", rows);
  EXPECT_THAT(some.rows.to_vector<float>(), Each(7));
  EXPECT_THAT(kv.pull("e").row(0).to_vector<float>(), Each(1));
}

TEST(MxnetPage, WhatIsApplied) {
  const muster::kv_store kv(muster::kv_kind::local);
  kv.init(3, full(1));
  kv.set_optimizer(muster::sgd{.rate = 0.1, .momentum = 0.9});
  kv.push(3, full(1));
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(0.9F));
  kv.set_optimizer(muster::sgd{.rate = 0.05, .momentum = 0.9});
  kv.set_updater([](const muster::store_key&, const tensor& input, tensor& stored) { axpy(2.0, input, stored); });
  kv.push(3, full(1));
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(2.9F));
  kv.set_optimizer(muster::assign_rule());
  kv.push(3, full(4));
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(4)) << "what was set last counts";
  kv.set_gradient_compression(muster::gradient_compression::of("2bit", 0.5));
  kv.push(3, full(4));
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(0.5F));
  kv.set_gradient_compression({});
  kv.barrier();
  kv.barrier(1s);
  std::string told;
  kv.on_command([&](int head, const std::string& body) { told = body + std::to_string(head); });
  kv.send_command(7, "body");
  EXPECT_EQ(told, "body7");
}

TEST(MxnetPage, Files) {
  const test::temporary_directory where;
  const std::string path = where.path() / "states";
  const muster::kv_store kv(muster::kv_kind::local);
  kv.init(3, full(1));
  kv.set_optimizer(muster::sgd{.rate = 0.1, .momentum = 0.9});
  kv.push(3, full(1));
  kv.save(path);
  kv.push(3, full(1));
  kv.load(path);
  kv.push(3, full(1));
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(testing::FloatNear(0.9F - 0.19F, 1e-6F)));
}

TEST(MxnetPage, WhatThereWasNot) {
  const muster::kv_ticket first_three(muster::kv_kind::sync, {.workers = 4, .enough = 3});
  EXPECT_EQ(first_three.options().enough, 3U);
  const muster::kv_store kv(muster::kv_kind::local);
  kv.set_timeout(10s);
  kv.init(3, full(1));
  kv.push(3, full(2));
  EXPECT_EQ(kv.values().version(3), 2U);
  EXPECT_TRUE(kv.values().wait_for(3, 2));
  const muster::error failure(errc::peer_lost, "worker 2 has died before its push");
  EXPECT_TRUE(failure.code() == muster::errc::peer_lost);
}

TEST(MxnetPage, SaysNothingThatIsNotCompiled) {
  test::expect_compiled(MUSTER_DOCS "coming-from-mxnet.md", __FILE__, 39);
}

}  // namespace
}  // namespace muster::mxnet_page_test
