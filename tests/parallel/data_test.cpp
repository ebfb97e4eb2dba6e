// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/data.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/device/tensor_print.hpp>

namespace muster::data_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

static_assert(!std::is_copy_constructible_v<data> && std::is_nothrow_move_constructible_v<data>);
static_assert(!std::is_copy_assignable_v<data> && std::is_nothrow_move_assignable_v<data>);

// Expects a refusal whose text has all of `parts`.
template <class Call, class... Parts>
void expect_refused(const Call& call, const Parts&... parts) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& found) {
    EXPECT_EQ(found.code(), make_error_code(errc::invalid_argument)) << found.what();
    for (const std::string part : std::initializer_list<const char*>{parts...}) {
      EXPECT_THAT(found.what(), HasSubstr(part));
    }
  }
}

// 0, 1, 2, …
tensor counted(const tensor_shape& shape) {
  const auto count = std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  return tensor::arange(0.0F, static_cast<float>(count)).reshape(shape);
}

data floats(std::size_t dimensions) { return data({.type = dtype::f32, .dimensions = dimensions, .name = "x"}); }

// ---- the predecessor's demonstration

TEST(Data, TheDemonstrationOfThePredecessor) {
  data x({.value = counted({5, 4}), .name = "x"});
  EXPECT_THAT(x.slice(2, 4).to_vector<float>(), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  x.fill_row(3, 0.0F);
  EXPECT_THAT(x[3].to_vector<float>(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(x[2].to_vector<float>(), ElementsAre(8, 9, 10, 11));

  x.set_value(counted({2000, 10}), {.oversize = 1.1});
  EXPECT_EQ(x.size(), 20000U);
  EXPECT_EQ(x.alloc_size(), 22000U);
  x.set_value(counted({2100, 10}));
  EXPECT_EQ(x.size(), 21000U);
  EXPECT_EQ(x.alloc_size(), 22000U);
  x.set_length(2000);
  EXPECT_EQ(x.shape(), (tensor_shape{2000, 10}));
  EXPECT_EQ(x.alloc_size(), 22000U);
  EXPECT_TRUE(equal(x.value(), counted({2000, 10})));
  x.set_value(counted({100, 8}));
  EXPECT_EQ(x.shape(), (tensor_shape{100, 8}));
  EXPECT_EQ(x.alloc_size(), 22000U);
  x.free_memory();
  EXPECT_EQ(x.alloc_size(), 0U);
  EXPECT_EQ(x.size(), 0U);
  x.set_value(counted({100, 8}));
  EXPECT_EQ(x.alloc_size(), 800U);

  const auto doubles = tensor::full({100, 8}, 0.1);
  expect_refused([&] { x.set_value(doubles); }, "data 'x'", "f64", "f32", "force_cast");
  EXPECT_TRUE(equal(x.value(), counted({100, 8})));
  x.set_value(doubles, {.force_cast = true});
  EXPECT_TRUE(equal(x.value(), tensor::full({100, 8}, 0.1F)));
  EXPECT_EQ(x.alloc_size(), 800U);
}

// ---- making

TEST(Data, TakesDtypeAndShapeOfItsValue) {
  const auto value = counted({3, 2});
  const data x({.value = value, .minibatch = true, .oversize = 1.5, .name = "x"});
  EXPECT_EQ(x.dtype(), dtype::f32);
  EXPECT_EQ(x.dimensions(), 2U);
  EXPECT_EQ(x.rows(), 3U);
  EXPECT_EQ(x.alloc_size(), 9U);
  EXPECT_EQ(x.name(), "x");
  EXPECT_TRUE(x.minibatch());
  EXPECT_TRUE(equal(x.value(), value));
  EXPECT_NE(x.value().data(), value.data());
  EXPECT_TRUE(x.value().is_shared());
}

TEST(Data, ATypeBesideAValueWins) {
  const data wide({.value = counted({3}), .type = dtype::f64});
  EXPECT_THAT(wide.value().to_vector<double>(), ElementsAre(0, 1, 2));
  expect_refused([] { data({.value = counted({3}), .type = dtype::i32, .name = "x"}); }, "data 'x'", "f32", "i32",
                 "force_cast");
  const data whole({.value = counted({3}), .type = dtype::i32, .force_cast = true});
  EXPECT_THAT(whole.value().to_vector<std::int32_t>(), ElementsAre(0, 1, 2));
}

TEST(Data, TheShapeOfAValueWins) {
  const data x({.value = counted({3, 2}), .dimensions = 3, .shape = tensor_shape{7}});
  EXPECT_EQ(x.shape(), (tensor_shape{3, 2}));
}

TEST(Data, AShapeGivesZerosWithRoom) {
  const data x({.type = dtype::i16, .shape = tensor_shape{3, 2}, .oversize = 2.0});
  EXPECT_EQ(x.shape(), (tensor_shape{3, 2}));
  EXPECT_EQ(x.alloc_size(), 12U);
  EXPECT_THAT(x.value().to_vector<std::int16_t>(), Each(0));
  EXPECT_FALSE(x.minibatch());
}

TEST(Data, DimensionsAloneAllocateNothing) {
  const auto x = floats(3);
  EXPECT_EQ(x.shape(), (tensor_shape{0, 0, 0}));
  EXPECT_EQ(x.alloc_size(), 0U);
  EXPECT_EQ(x.value().shape(), x.shape());
}

TEST(Data, WhatIsMissingIsNamed) {
  expect_refused([] { data({.name = "x"}); }, "data 'x'", ".type or .value", ".dimensions, .shape or .value");
  expect_refused([] { data({.type = dtype::f32}); }, "data: ", "a number of dimensions");
  expect_refused([] { data({.dimensions = 2}); }, "a dtype, by .type or .value");
  expect_refused([] { data({.shape = tensor_shape{2}}); }, "a dtype, by .type or .value");
}

TEST(Data, WhatDoesNotAgreeIsNamed) {
  expect_refused([] { data({.type = dtype::f32, .dimensions = 3, .shape = tensor_shape{2, 2}}); }, "3 dimensions",
                 "(2, 2)", "leave out one");
  expect_refused([] { data({.type = dtype::f32, .dimensions = 9}); }, "9 dimensions", "at most 8");
}

// ---- values

TEST(Data, AnOversizeOutOfRangeIsRefusedEvenIfItIsNotUsed) {
  auto x = floats(1);
  x.set_value(counted({8}));
  for (const auto wrong :
       {0.99, 2.01, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    expect_refused([&] { x.set_value(counted({4}), {.oversize = wrong}); }, "data 'x'", "oversize", "from 1 to 2");
    expect_refused([&] { x.set_length(4, wrong); }, "oversize", "from 1 to 2");
    expect_refused([&] { x.set_shape({4}, wrong); }, "oversize", "from 1 to 2");
    expect_refused([&] { data({.type = dtype::f32, .dimensions = 1, .oversize = wrong}); }, "oversize");
  }
  expect_refused([&] { x.set_length(4, 2.5); }, "2.5");
  EXPECT_EQ(x.rows(), 8U);
  x.set_value(counted({20}), {.oversize = 2.0});
  EXPECT_EQ(x.alloc_size(), 40U);
}

TEST(Data, RoomIsRoundedDownButNeverLessThanNeeded) {
  auto x = floats(1);
  x.set_value(counted({3}), {.oversize = 1.3});
  EXPECT_EQ(x.alloc_size(), 3U);
  x.set_value(counted({7}), {.oversize = 1.5});
  EXPECT_EQ(x.alloc_size(), 10U);
}

TEST(Data, AnotherNumberOfDimensionsIsRefused) {
  auto x = floats(2);
  expect_refused([&] { x.set_value(counted({4})); }, "data 'x'", "(4,)", "1 dimensions", "has 2", "reshape");
  expect_refused([&] { x.set_shape({4, 2, 3}); }, "(4, 2, 3)", "3 dimensions", "has 2");
  expect_refused([&] { static_cast<void>(x.condition_data(counted({4}))); }, "(4,)", "has 2");
  expect_refused([&] { x.set_value(1.0F); }, "()", "has 2");
}

TEST(Data, TakesVectorsAndSpansWithAShape) {
  auto x = floats(2);
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  x.set_value(values, {2, 3});
  EXPECT_THAT(x[1].to_vector<float>(), ElementsAre(4, 5, 6));
  x.set_value(std::span(values).first(2), {2, 1}, {.oversize = 2.0});
  EXPECT_EQ(x.at<float>(1, 0), 2.0F);
  x.set_value(std::array<double, 1>{0.1}, {1, 1}, {.force_cast = true});
  EXPECT_EQ(x.at<float>(0, 0), 0.1F);
  auto line = floats(1);
  line.set_value(values);
  EXPECT_EQ(line.value().to_vector<float>(), values);
  expect_refused([&] { x.set_value(values); }, "(6,)", "has 2");
  expect_refused([&] { x.set_value(values, {2, 2}); }, "data 'x'", "6 values", "(2, 2)", "4 elements");
  expect_refused([&] { x.set_value(std::vector<double>{1}, {1, 1}); }, "f64", "force_cast");
}

TEST(Data, TakesSlicesAndColumns) {
  auto x = floats(2);
  x.set_value(counted({3, 4}).slice(1, 3, 1));
  EXPECT_THAT(x.value().to_vector<float>(), ElementsAre(1, 2, 5, 6, 9, 10));
}

TEST(Data, TakesPartsOfItself) {
  auto x = floats(2);
  x.set_value(counted({4, 3}));
  x.set_value(x.slice(1, 4));
  EXPECT_THAT(x.value().to_vector<float>(), ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11));
  x.set_value(x.value().slice(1, 3, 1));
  EXPECT_THAT(x.value().to_vector<float>(), ElementsAre(4, 5, 7, 8, 10, 11));
  x.set_rows(1, x.slice(0, 2));
  EXPECT_THAT(x.value().to_vector<float>(), ElementsAre(4, 5, 4, 5, 7, 8));
  x.set_value(counted({2, 3}));
  const auto transposed = tensor::over(x.value().storage(), dtype::f32, {3, 2}, {1, 3}, 0);
  x.set_value(transposed);
  EXPECT_THAT(x.value().to_vector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Data, WithoutDimensionsHoldsANumber) {
  auto rate = floats(0);
  EXPECT_EQ(rate.size(), 0U);
  EXPECT_EQ(rate.shape(), tensor_shape());
  expect_refused([&] { static_cast<void>(rate.value()); }, "data 'x'", "no value yet", "set_value");
  rate.set_value(tensor::full<float>({}, 0.5F));
  EXPECT_EQ(rate.value().item<float>(), 0.5F);
  EXPECT_EQ(rate.size(), 1U);
  EXPECT_EQ(rate.alloc_size(), 1U);
  const auto before = rate.value();
  rate.set_value(0.1);
  EXPECT_EQ(rate.at<float>(), 0.1F);
  EXPECT_EQ(before.item<float>(), 0.1F);
  rate.set_shape({});
  EXPECT_EQ(rate.at<float>(), 0.1F);
  expect_refused([&] { static_cast<void>(rate.rows()); }, "no dimensions");
  expect_refused([&] { rate.set_length(2); }, "no dimensions");
  expect_refused([&] { rate.set_rows(0, counted({1})); }, "(1,)", "()");
  rate.free_memory();
  EXPECT_EQ(rate.size(), 0U);
  rate.set_shape({});
  EXPECT_EQ(rate.at<float>(), 0.0F);
  EXPECT_EQ(data({.value = tensor::full({}, 2.0)}).at<double>(), 2.0);
}

TEST(Data, NoRowsAreAValue) {
  auto x = floats(2);
  x.set_value(tensor::zeros<float>({0, 10}));
  EXPECT_EQ(x.shape(), (tensor_shape{0, 10}));
  EXPECT_EQ(x.alloc_size(), 0U);
  EXPECT_EQ(x.value().shape(), (tensor_shape{0, 10}));
  x.set_length(3);
  EXPECT_THAT(x.value().to_vector<float>(), Each(0));
  EXPECT_EQ(x.size(), 30U);
  x.set_length(0);
  EXPECT_EQ(x.size(), 0U);
  EXPECT_EQ(x.alloc_size(), 30U);
  x.set_rows(0, tensor::zeros<float>({0, 10}));
}

TEST(Data, ShapesBeyondAllAddressesAreRefusedAndChangeNothing) {
  auto x = floats(2);
  x.set_value(counted({2, 2}));
  const std::ptrdiff_t negative = -3;
  expect_refused([&] { x.set_length(static_cast<std::size_t>(negative)); }, "data 'x'", "negative");
  expect_refused([&] { x.set_shape({std::size_t{1} << 32U, std::size_t{1} << 32U}); }, "(4294967296, 4294967296)");
  expect_refused([&] { x.set_shape({0, std::size_t{1} << 62U}); }, "bytes");
  EXPECT_TRUE(equal(x.value(), counted({2, 2})));
}

TEST(Data, ARefusedAllocationChangesNothing) {
  auto x = floats(1);
  x.set_value(counted({4}));
  try {
    x.set_length(std::size_t{1} << 58U, 2.0);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& found) {
    EXPECT_EQ(found.code(), make_error_code(errc::out_of_memory)) << found.what();
  }
  EXPECT_TRUE(equal(x.value(), counted({4})));
}

// ---- lengths and shapes

TEST(Data, GrowingKeepsTheRowsAndAddsZeros) {
  auto x = floats(2);
  x.set_value(counted({2000, 10}));
  const auto before = x.value();
  x.set_length(4000, 1.5);
  EXPECT_EQ(x.shape(), (tensor_shape{4000, 10}));
  EXPECT_EQ(x.alloc_size(), 60000U);
  EXPECT_NE(x.value().data(), before.data());
  EXPECT_TRUE(equal(x.slice(0, 2000), counted({2000, 10})));
  EXPECT_TRUE(equal(x.slice(2000, 4000), tensor::zeros<float>({2000, 10})));
}

TEST(Data, RowsThatComeBackAreZero) {
  auto x = floats(2);
  x.set_value(counted({4, 2}));
  x.set_length(1);
  x.set_length(3);
  EXPECT_THAT(x.value().to_vector<float>(), ElementsAre(0, 1, 0, 0, 0, 0));
  EXPECT_EQ(x.alloc_size(), 8U);
}

TEST(Data, AShapeOfTheSameRowsKeepsThem) {
  auto x = floats(3);
  x.set_value(counted({2, 2, 2}));
  x.set_shape({3, 2, 2});
  EXPECT_TRUE(equal(x.slice(0, 2), counted({2, 2, 2})));
  x.set_shape({3, 2, 2});
  EXPECT_TRUE(equal(x.slice(0, 2), counted({2, 2, 2})));
}

TEST(Data, AShapeOfOtherRowsIsZeros) {
  auto x = floats(2);
  x.set_value(counted({6, 2}));
  x.set_shape({2, 6});
  EXPECT_EQ(x.alloc_size(), 12U);
  EXPECT_THAT(x.value().to_vector<float>(), Each(0));
  x.set_value(counted({6, 2}));
  x.set_shape({10, 5});
  EXPECT_EQ(x.size(), 50U);
  EXPECT_THAT(x.value().to_vector<float>(), Each(0));
}

TEST(Data, FreedOnesHaveNoRowsOfTheShapeAsBefore) {
  auto x = floats(2);
  x.set_value(counted({6, 2}));
  x.free_memory();
  EXPECT_EQ(x.shape(), (tensor_shape{0, 2}));
  EXPECT_EQ(x.alloc_size(), 0U);
  x.free_memory();
  x.set_length(3);
  EXPECT_THAT(x.value().to_vector<float>(), ElementsAre(0, 0, 0, 0, 0, 0));
}

// ---- elements

TEST(Data, ElementsAreReadAndWrittenThroughTensors) {
  const data x({.value = counted({3, 2})});
  x[0].fill(7.0F);
  x.slice(2, 3).copy_from(tensor::from({8.0F, 9.0F}, {1, 2}));
  x.at<float>(1, 1) = -1;
  EXPECT_THAT(x.value().to_vector<float>(), ElementsAre(7, 7, 2, -1, 8, 9));
  x.fill(5);
  EXPECT_THAT(x.value().to_vector<float>(), Each(5));
  expect_refused([&] { static_cast<void>(x[3]); }, "row 3", "(3, 2)");
  expect_refused([&] { static_cast<void>(x.slice(2, 4)); }, "slice 2 to 4");
  expect_refused([&] { x.fill_row(4, 0.0F); }, "row 4");
}

TEST(Data, RowsAreSetWhereTheyFit) {
  const data x({.value = counted({4, 2}), .name = "x"});
  x.set_rows(1, tensor::full<float>({2, 2}, 9));
  EXPECT_THAT(x.value().to_vector<float>(), ElementsAre(0, 1, 9, 9, 9, 9, 6, 7));
  x.set_rows(3, tensor::from({std::int8_t{-1}, std::int8_t{-2}}, {1, 2}));
  EXPECT_THAT(x[3].to_vector<float>(), ElementsAre(-1, -2));
  expect_refused([&] { x.set_rows(0, tensor::ones<double>({1, 2})); }, "f64", "f32", "force_cast");
  x.set_rows(0, tensor::full({1, 2}, 0.1), true);
  EXPECT_THAT(x[0].to_vector<float>(), Each(0.1F));
  expect_refused([&] { x.set_rows(3, counted({2, 2})); }, "data 'x'", "(2, 2)", "row 3", "(4, 2)", "set_length");
  expect_refused([&] { x.set_rows(0, counted({2, 3})); }, "(2, 3)", "(4, 2)");
  expect_refused([&] { x.set_rows(0, counted({2})); }, "(2,)", "(4, 2)");
  expect_refused([&] { x.set_rows(SIZE_MAX, counted({1, 2})); }, "(1, 2)");
}

TEST(Data, ConditioningSaysWhatWouldBeStored) {
  const data x({.value = counted({1, 2})});
  const auto value = tensor::from({std::int16_t{3}, std::int16_t{4}}, {2, 1});
  const auto found = x.condition_data(value);
  EXPECT_THAT(found.to_vector<float>(), ElementsAre(3, 4));
  EXPECT_EQ(found.shape(), (tensor_shape{2, 1}));
  EXPECT_TRUE(equal(x.value(), counted({1, 2})));
  expect_refused([&] { static_cast<void>(x.condition_data(tensor::ones<double>({1, 1}))); }, "f64", "force_cast");
  EXPECT_EQ(x.condition_data(tensor::ones<double>({1, 1}), true).dtype(), dtype::f32);
  const auto same = counted({2, 2});
  EXPECT_EQ(x.condition_data(same).data(), same.data());
}

// ---- which dtypes are taken without force. From above to below as the dtypes are numbered, each into those from left
// to right. NumPy's can_cast, but for the four that are marked ~: 64 bits of an integer do not fit into an f64.
constexpr std::array<std::string_view, dtype_count> casts = {
    // b i8 16 32 64 u8 16 32 64 f16 bf 32 64 c64 128
    "+ +  +  +  +  +  +  +  +  +   +  +  +  +   +",  // bool
    ". +  +  +  +  .  .  .  .  +   +  +  +  +   +",  // i8
    ". .  +  +  +  .  .  .  .  .   .  +  +  +   +",  // i16
    ". .  .  +  +  .  .  .  .  .   .  .  +  .   +",  // i32
    ". .  .  .  +  .  .  .  .  .   .  .  ~  .   ~",  // i64
    ". .  +  +  +  +  +  +  +  +   +  +  +  +   +",  // u8
    ". .  .  +  +  .  +  +  +  .   .  +  +  +   +",  // u16
    ". .  .  .  +  .  .  +  +  .   .  .  +  .   +",  // u32
    ". .  .  .  .  .  .  .  +  .   .  .  ~  .   ~",  // u64
    ". .  .  .  .  .  .  .  .  +   .  +  +  +   +",  // f16
    ". .  .  .  .  .  .  .  .  .   +  +  +  +   +",  // bf16
    ". .  .  .  .  .  .  .  .  .   .  +  +  +   +",  // f32
    ". .  .  .  .  .  .  .  .  .   .  .  +  .   +",  // f64
    ". .  .  .  .  .  .  .  .  .   .  .  .  +   +",  // c64
    ". .  .  .  .  .  .  .  .  .   .  .  .  .   +",  // c128
};

bool is_cast(std::size_t from, std::size_t to) {
  std::string marks;
  for (const char each : casts.at(from)) {
    if (each != ' ') marks += each;
  }
  EXPECT_EQ(marks.size(), dtype_count);
  return marks.at(to) == '+';
}

TEST(Data, EveryDtypeIsTakenWhereTheTableSaysSoAndByForceEverywhere) {
  for (std::size_t to = 0; to < dtype_count; ++to) {
    data x({.type = static_cast<dtype>(to), .dimensions = 1});
    for (std::size_t from = 0; from < dtype_count; ++from) {
      const auto value = tensor::empty(static_cast<dtype>(from), {3}, memory::local);
      value.fill(1);
      const auto name = std::string(dtype_name(value.dtype()));
      if (is_cast(from, to)) {
        EXPECT_NO_THROW(x.set_value(value)) << name << " into " << x.dtype();
      } else {
        expect_refused([&] { x.set_value(value); }, name.c_str(), dtype_name(x.dtype()).data(), "force_cast");
      }
      x.fill(0);
      x.set_value(value, {.force_cast = true});
      const auto ones = tensor::empty(x.dtype(), {3}, memory::local);
      ones.fill(1);
      EXPECT_TRUE(equal(x.value(), ones)) << name << " into " << x.dtype();
    }
  }
}

// ---- memory

TEST(Data, TensorsOfBeforeKeepTheOldMemory) {
  auto x = floats(1);
  x.set_value(counted({4}));
  const auto kept = x.value();
  x.set_value(tensor::full<float>({3}, 9));
  EXPECT_THAT(kept.to_vector<float>(), ElementsAre(9, 9, 9, 3));
  x.set_value(tensor::full<float>({5}, 7));
  EXPECT_THAT(kept.to_vector<float>(), ElementsAre(9, 9, 9, 3));
  const auto later = x.value();
  x.set_length(6);
  x.fill(1);
  EXPECT_THAT(later.to_vector<float>(), Each(7));
  const auto last = x.value();
  x.free_memory();
  EXPECT_THAT(last.to_vector<float>(), Each(1));
}

TEST(Data, AMovedOneTakesEverythingAlong) {
  data x({.value = counted({2, 2}), .minibatch = true, .name = "x"});
  const auto* const where = x.value().data();
  data y(std::move(x));
  EXPECT_EQ(y.value().data(), where);
  EXPECT_EQ(y.name(), "x");
  EXPECT_TRUE(y.minibatch());
  x = floats(1);
  x.set_value(counted({3}));
  EXPECT_EQ(x.rows(), 3U);
  y = std::move(x);
  EXPECT_EQ(y.rows(), 3U);
}

TEST(Data, MemoryIsReleasedWithTheLastThatHasIt) {
  std::weak_ptr<const storage> memory;
  auto kept = tensor();
  {
    const data x({.type = dtype::f32, .shape = tensor_shape{1000, 1000}});
    memory = x.value().storage();
    kept = x.row(7);
  }
  EXPECT_FALSE(memory.expired());
  kept = tensor();
  EXPECT_TRUE(memory.expired());
}

TEST(Data, ReplacedMemoryIsReleasedAtOnce) {
  auto x = floats(1);
  x.set_value(counted({4}));
  const std::weak_ptr<const storage> first = x.value().storage();
  x.set_length(5);
  EXPECT_TRUE(first.expired());
  const std::weak_ptr<const storage> second = x.value().storage();
  x.free_memory();
  EXPECT_TRUE(second.expired());
}

}  // namespace
}  // namespace muster::data_test
