// SPDX-License-Identifier: BSL-1.0
// A key-value store of one process: MXNet's numbers (docs/coming-from-mxnet.md), and what it does not do.
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/text.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/sparse_rows.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/kv_store.hpp>

#include "kv_support.hpp"

namespace muster::kv_store_test {
namespace {

using testing::Each;
using testing::HasSubstr;

TEST(KvStore, AssignsWithoutAnUpdater) {
  const kv_store kv(kv_kind::local);
  kv.init(3, ones(small, 4));
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(4));
  kv.push(3, ones(small, 8));
  kv.push(3, ones(small, 1));
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(1));
  kv.push(3, {ones(small), ones(small), ones(small), ones(small)});
  EXPECT_THAT(kv.pull(3).to_vector<float>(), Each(4)) << "several devices are summed";
}

TEST(KvStore, AnUpdaterMakesTheNextValue) {
  const kv_store kv(kv_kind::local);
  kv.init("a", ones(small, 4));
  kv.set_updater([](const store_key&, const tensor& input, tensor& stored) { axpy(2.0, input, stored); });
  kv.push("a", ones(small));
  EXPECT_THAT(kv.pull("a").to_vector<float>(), Each(6));
  const auto into = ones(small, 0);
  kv.pull("a", into);
  EXPECT_THAT(into.to_vector<float>(), Each(6));
  EXPECT_THAT(kv.push_pull("a", ones(small)).to_vector<float>(), Each(8));
}

TEST(KvStore, OneThatThrowsFailsThePush) {
  const kv_store kv(kv_kind::local);
  kv.init("a", ones(small, 4));
  kv.set_updater([](const store_key&, const tensor&, tensor&) { throw std::runtime_error("no"); });
  EXPECT_THROW(kv.push("a", ones(small)), std::runtime_error);
  EXPECT_THAT(kv.pull("a").to_vector<float>(), Each(4));
}

TEST(KvStore, ARuleIsApplied) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small, 1));
  kv.set_optimizer(sgd{.rate = 0.5, .momentum = 0.5});
  kv.push("w", ones(small, 1));
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(0.5F));
  kv.push("w", ones(small, 1));
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(-0.25F)) << "with what it remembers";
}

TEST(KvStore, WhatDoesNotFitIsSaid) {
  const kv_store kv(kv_kind::local);
  EXPECT_THAT(text_of([&] { kv.push("w", ones(small)); }), HasSubstr("there is no value 'w'"));
  kv.init("w", ones(small));
  EXPECT_THAT(text_of([&] { kv.init("w", ones(small)); }), HasSubstr("initialized twice"));
  EXPECT_THAT(text_of([&] { kv.push("w", ones(odd)); }), HasSubstr("shape"));
  EXPECT_THAT(text_of([&] { kv.push("w", tensor::zeros<int>(small)); }), HasSubstr("dtype"));
  EXPECT_THAT(text_of([] { const kv_store alone(kv_kind::sync); }), HasSubstr("needs a kv_ticket"));
  EXPECT_THAT(text_of([] { static_cast<void>(kv_kind_of("lcoal")); }), HasSubstr("dist_sync"));
  EXPECT_THAT(text_of([] { static_cast<void>(kv_kind_of("horovod")); }), HasSubstr("muster::group"));
  EXPECT_EQ(kv_kind_of("Dist_Sync"), kv_kind::sync);
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(1)) << "the store goes on";
}

TEST(KvStore, ListsOfKeysAndTheSameKeyTwice) {
  const kv_store kv(kv_kind::device);
  kv.init({5, 7, 11}, {ones(small, 0), ones(small, 0), ones(small, 0)});
  kv.push({5, 7, 11}, {ones(small, 4), ones(small, 4), ones(small, 4)});
  for (const auto& each : kv.pull({5, 7, 11})) EXPECT_THAT(each.to_vector<float>(), Each(4));
  kv.push({5, 5}, {ones(small, 2), ones(small, 3)});
  const std::vector<tensor> outs{ones(small, 0), ones(small, 0)};
  kv.pull(5, outs);
  for (const auto& each : outs) EXPECT_THAT(each.to_vector<float>(), Each(5));
  EXPECT_THAT(text_of([&] { kv.push({5, 7}, {ones(small)}); }), HasSubstr("2 keys and 1 values"));
  kv.init("late", ones(small, 9));
  EXPECT_THAT(kv.pull("late").to_vector<float>(), Each(9)) << "a key that is made after others were pushed";
}

TEST(KvStore, AfterARefusedPushTheNextOneCounts) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small));
  EXPECT_THROW(kv.push("w", ones(odd)), error);
  EXPECT_THROW(kv.push_async("w", ones(odd)).get(), error);
  kv.push("w", ones(small, 3));
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(3));
}

TEST(KvStore, KeysOf64BitsAreTold) {
  const kv_store kv(kv_kind::local);
  const std::int64_t far = (std::int64_t{1} << 32) + 2;
  kv.init({2, far, "2"}, {ones(small, 1), ones(small, 2), ones(small, 3)});
  EXPECT_EQ(kv.pull(2).at<const float>(0, 0), 1);
  EXPECT_EQ(kv.pull(far).at<const float>(0, 0), 2);
  EXPECT_EQ(kv.pull("2").at<const float>(0, 0), 3);
}

TEST(KvStore, WhatWasPushedIsNeitherChangedNorKept) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small, 1));
  const auto pushed = ones(small, 5);
  kv.push("w", pushed);
  static_cast<void>(kv.pull("w"));
  EXPECT_THAT(pushed.to_vector<float>(), Each(5));
  pushed.fill(7.0F);
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(5));
}

TEST(KvStore, OnlyRowsThatArePushedChange) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones({4, 2}, 1));
  kv.set_optimizer(sgd{.rate = 1, .momentum = 0.5});
  const std::vector<std::int64_t> rows{2, 0, 2};
  kv.push("w", sparse_rows::of(rows, ones({3, 2})));
  kv.push("w", sparse_rows::of(std::span(rows).first(1), ones({1, 2})));
  EXPECT_THAT(kv.pull("w").to_vector<float>(), testing::ElementsAre(0, 0, 1, 1, -3, -3, 1, 1));
  const auto some = kv.row_sparse_pull("w", rows);
  EXPECT_THAT(some.indices.to_vector<std::int64_t>(), testing::ElementsAre(0, 2));
  EXPECT_THAT(some.rows.to_vector<float>(), testing::ElementsAre(0, 0, -3, -3));
  kv.push("w", sparse_rows::of({}, tensor::zeros<float>({0, 2})));
  EXPECT_EQ(kv.row_sparse_pull("w", {}).count(), 0U);
  EXPECT_THAT(text_of([&] { kv.push("w", sparse_rows::of(rows, ones({3, 3}))); }), HasSubstr("its rows do not fit"));
  const std::vector<std::int64_t> outside{4};
  EXPECT_THAT(text_of([&] { kv.push("w", sparse_rows::of(outside, ones({1, 2}))); }), HasSubstr("it has row 4"));
}

TEST(KvStore, CompressedGradientsKeepWhatTheyLose) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(odd, 0));
  kv.init("one", ones(odd, 1));
  EXPECT_THAT(kv.pull("one").to_vector<float>(), Each(1)) << "init is not compressed";
  kv.set_updater(add_twice);
  kv.set_gradient_compression(gradient_compression::of("2bit", 0.5));
  for (const auto& [pushed, wanted] : {std::pair(0.4F, 0.0F), {0.1F, 1.0F}, {0.2F, 1.0F}, {0.3F, 2.0F}, {0.5F, 3.0F}}) {
    kv.push("w", ones(odd, pushed));
    ASSERT_THAT(kv.pull("w").to_vector<float>(), Each(wanted)) << pushed;
  }
  kv.set_gradient_compression(gradient_compression::of("1bit", 0));
  for (const auto& [pushed, wanted] :
       {std::pair(1.0F, 5.0F), {-1.0F, 3.0F}, {2.0F, 5.0F}, {0.0F, 7.0F}, {-2.0F, 5.0F}}) {
    kv.push("w", ones(odd, pushed));
    ASSERT_THAT(kv.pull("w").to_vector<float>(), Each(wanted)) << pushed;
  }
  EXPECT_THAT(text_of([&] { kv.push("w", ones(small)); }), HasSubstr("shape (2, 3)"));
  kv.set_gradient_compression({});
  kv.push("w", ones(odd, 0.25F));
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(5.5F)) << "switched off";
}

TEST(KvStore, AsynchronousOperationsOfAKeyAreMadeInTheirOrder) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small, 0));
  const auto pushed = ones(small, 1);
  auto first = kv.push_async("w", pushed, {.transfer = transfer::copy});
  pushed.fill(2.0F);
  auto between = kv.pull_async("w");
  auto second = kv.push_async("w", pushed);
  first.get();
  EXPECT_THAT(between.get().to_vector<float>(), Each(1));
  kv.push("w", ones(small, 3));
  EXPECT_TRUE(second.ready()) << "a push that waits is behind it";
  EXPECT_THAT(kv.pull("w").to_vector<float>(), Each(3));
  EXPECT_THAT(text_of([&] { kv.push_async("w", ones(odd)).get(); }), HasSubstr("shape"));
  EXPECT_THAT(text_of([&] { static_cast<void>(kv.push_async("v", ones(odd))); }), HasSubstr("there is no value 'v'"));
}

TEST(KvStore, CommandsRunAtOwners) {
  const kv_store kv(kv_kind::local);
  EXPECT_THAT(text_of([&] { kv.send_command(7, "lost"); }), HasSubstr("rank 0"));
  std::string found;
  kv.on_command([&](int head, const std::string& body) { found = text(head, body); });
  kv.send_command(7, " and more");
  EXPECT_EQ(found, "7 and more");
  kv.on_command([](int, const std::string&) { throw std::runtime_error("not so"); });
  EXPECT_THAT(text_of([&] { kv.send_command(7, ""); }), HasSubstr("not so"));
}

TEST(KvStore, ARuleForWholeNumbersIsRefusedAndTheStoreGoesOn) {
  const kv_store kv(kv_kind::local);
  kv.init("n", tensor::full<std::int32_t>(small, 1));
  kv.set_optimizer(sgd{.rate = 1});
  EXPECT_THAT(text_of([&] { kv.push("n", tensor::full<std::int32_t>(small, 1)); }), HasSubstr("sgd"));
  kv.set_optimizer(assign_rule());
  kv.push("n", tensor::full<std::int32_t>(small, 2));
  EXPECT_THAT(kv.pull("n").to_vector<std::int32_t>(), Each(2));
}

// A rate that falls.
TEST(KvStore, ARuleOfTheSameKindGoesOnAndAnotherBeginsAnew) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small, 0));
  kv.set_optimizer(sgd{.rate = 1, .momentum = 0.5});
  kv.push("w", ones(small));  // moment 1
  kv.set_optimizer(sgd{.rate = 2, .momentum = 0.5});
  kv.push("w", ones(small));  // moment 1.5
  require_all(kv.pull("w"), -1 - 2 * 1.5F, "it goes on");
  kv.set_optimizer(sgd{.rate = 1});
  kv.push("w", ones(small));
  kv.set_optimizer(sgd{.rate = 1, .momentum = 0.5});
  kv.push("w", ones(small));
  require_all(kv.pull("w"), -4 - 1 - 1, "it begins anew");
}

// The program pushes what it likes into the store of the values.
TEST(KvStore, AValueOfAnotherFormBeginsWithNewStates) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small, 0));
  kv.set_optimizer(sgd{.rate = 1, .momentum = 0.5});
  kv.push("w", ones(small));
  kv.values().push("w", ones({300, 300}, 0));
  kv.push("w", ones({300, 300}));
  require_all(kv.pull("w"), -1, "new states");
  kv.push("w", ones({300, 300}));
  require_all(kv.pull("w"), -2.5, "which go on");
}

TEST(KvStore, WhatAnUpdaterDoesToItsInputNobodySees) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small, 0));
  kv.set_updater([](const store_key&, const tensor& input, tensor& stored) {
    scale(input, 2);
    axpy(1.0, input, stored);
  });
  const auto mine = ones(small);
  kv.push("w", mine);
  require_all(mine, 1, "what was pushed");
  kv.push("w", kv.pull("w"));  // which is read-only
  require_all(kv.pull("w"), 2 + 2 * 2, "both pushes");
}

}  // namespace
}  // namespace muster::kv_store_test
