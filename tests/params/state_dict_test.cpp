// SPDX-License-Identifier: BSL-1.0
#include <cstdint>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/assign.hpp>
#include <muster/params/state_dict.hpp>
#include <muster/pool/pool.hpp>

namespace muster {
namespace {

using testing::Each;
using testing::ElementsAre;

state_dict model_of(float value) {
  return {{"w", tensor::full<float>({2, 3}, value)}, {"n", tensor::full<std::int8_t>({3}, 7)}};
}

TEST(StateDict, HasCopiesInAnOrder) {
  const auto weights = tensor::full<float>({2, 3}, 1);
  const state_dict model{{"w", weights}, {"n", tensor::full<std::int8_t>({3}, 7)}};
  weights.fill(9.0F);
  EXPECT_THAT(model.names(), ElementsAre("w", "n"));
  EXPECT_THAT(model.at("w").to_vector<float>(), Each(1));
  EXPECT_THAT(model.at("n").to_vector<std::int8_t>(), Each(7));
  EXPECT_EQ(model.nbytes(), 27U);
  EXPECT_FALSE(model.contains("b"));
  EXPECT_THROW(static_cast<void>(model.at("b")), error);
  EXPECT_THROW((state_dict{{"w", weights}, {"w", weights}}), error);
}

TEST(StateDict, LoadsWhatIsLikeIt) {
  auto model = model_of(1);
  const auto where = model.at("w");
  auto other = model_of(5);
  other.set_version(4);
  model.load(other);
  EXPECT_THAT(where.to_vector<float>(), Each(5)) << "where the elements lie";
  EXPECT_EQ(model.version(), 4);
  EXPECT_THROW(model.load(state_dict{{"w", tensor::zeros<float>({2, 3})}}), error);
  EXPECT_THROW(model.load({{"w", tensor::zeros<float>({3, 2})}, {"n", tensor::zeros<std::int8_t>({3})}}), error);
}

TEST(StateDict, ACloneHasElementsOfItsOwn) {
  const auto model = model_of(1);
  const auto copy = model.clone();
  model.at("w").fill(2.0F);
  EXPECT_THAT(copy.at("w").to_vector<float>(), Each(1));
  EXPECT_THAT(model.zeros_like().at("w").to_vector<float>(), Each(0));
  EXPECT_TRUE(copy.is_like(model.zeros_like()));
}

TEST(StateDict, GoesToAnotherProcessAndBack) {
  pool workers({.workers = 1});
  const auto found = workers.apply(
      [](const state_dict& given) {
        auto made = given.clone();
        made.at("w").fill(3.0F);
        made.set_version(8);
        return made;
      },
      model_of(1));
  EXPECT_THAT(found.at("w").to_vector<float>(), Each(3));
  EXPECT_THAT(found.at("n").to_vector<std::int8_t>(), Each(7));
  EXPECT_EQ(found.version(), 8);
}

TEST(StateDict, OfTensorsWithoutElements) {
  const state_dict model({{"a", tensor::zeros<float>({0, 3})}, {"b", tensor::zeros<int>({0})}});
  EXPECT_EQ(model.at("a").shape(), tensor_shape({0, 3}));
  EXPECT_EQ(model.clone().at("b").dtype(), dtype::i32);
}

TEST(StateDict, OfNoTensors) {
  state_dict none;
  none.load(state_dict());
  EXPECT_EQ(none.clone().size(), 0U);
  EXPECT_EQ(none.nbytes(), 0U);
}

TEST(StateDict, SizesAreMachins) {
  const state_dict model{{"i8", tensor::zeros<std::int8_t>({10})},
                         {"i16", tensor::zeros<std::int16_t>({10})},
                         {"i32", tensor::zeros<std::int32_t>({10})},
                         {"f64", tensor::zeros<double>({10})},
                         {"buffer", tensor::zeros<float>({10})}};
  EXPECT_EQ(size_of(model, 1), 190U);
  EXPECT_EQ(size_of(model), 380U);
}

}  // namespace
}  // namespace muster
