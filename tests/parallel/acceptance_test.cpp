// SPDX-License-Identifier: BSL-1.0
// The examples of Synkhronos, with results that a serial program gives.
#include <algorithm>
#include <map>
#include <optional>
#include <thread>

#include <muster/collectives/group.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/event.hpp>

#include "world_support.hpp"

namespace muster::acceptance_test {
namespace {

using test::column_sums;
using test::expect_close;
using test::in_worlds;
using test::noise;
using test::total;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;

tensor product(const tensor& x, const tensor& y) {
  const auto a = x.view<float, 2>();
  const auto b = y.view<float, 2>();
  auto made = tensor::zeros<float>({x.shape()[0], y.shape()[1]}, memory::local);
  const auto c = made.view<float, 2>();
  for (std::size_t row = 0; row < x.shape()[0]; ++row) {
    for (std::size_t inner = 0; inner < x.shape()[1]; ++inner) {
      for (std::size_t column = 0; column < y.shape()[1]; ++column) c(row, column) += a(row, inner) * b(inner, column);
    }
  }
  return made;
}

float mean_of_product(const tensor& x, const tensor& y) {
  const auto made = product(x, y.reshape({y.size(), 1}));
  return total(made) / static_cast<float>(made.size());
}

TEST(WorldAcceptance, AScatteredProductsMeanIsTheSerialOne) {
  const auto x = noise({100, 10});
  const auto y = noise({10}, 7);
  const auto expected = mean_of_product(x, y);
  in_worlds({1, 2, 3, 4, 8}, [&](world& w) {
    auto f = w.function(mean_of_product, rows("x"), whole("y"), outputs(avg("mean")));
    EXPECT_NEAR(f(x, y), expected, 1e-6F * expected);
  });
}

tensor scaled_sums(const tensor& x, const tensor& s) {
  auto made = column_sums(x);
  for (std::size_t index = 0; index < s.size(); ++index) made.at<float>(index) *= s.at<float>(index);
  return made;
}

TEST(WorldAcceptance, UpdatesAreLocalUntilACollectiveJoinsThem) {
  const auto x = tensor::from<float>({1, 1, 2, 2, 3, 3, 4, 4}, {4, 2});
  const auto ones = tensor::ones<float>({2});
  for (const auto who : {test::caller::first, test::caller::none}) {
    world w(test::options_for(2, who));
    auto s = w.replicate("s", ones);
    auto f = w.function(scaled_sums, rows("x"), replicas(s), updates(assign(s, sum)));
    f(x);
    EXPECT_EQ(w.gather(s).shape(), (tensor_shape{2, 2}));
    EXPECT_THAT(w.gather(s).to_vector<float>(), ElementsAre(3, 3, 7, 7));
    w.reduce_in_place(s, sum);
    EXPECT_THAT(w.get_value(w.master_rank(), s).to_vector<float>(), ElementsAre(10, 10));
    EXPECT_THAT(w.gather(s).to_vector<float>(), ElementsAre(10, 10, 7, 7));
    w.broadcast(s, ones);
    EXPECT_THAT(w.gather(s).to_vector<float>(), ElementsAre(1, 1, 1, 1));
    f(x);
    w.all_reduce(s, sum);
    EXPECT_THAT(w.gather(s).to_vector<float>(), ElementsAre(10, 10, 10, 10));
  }
  world alone({.ranks = 1});
  auto s = alone.replicate("s", ones);
  alone.function(scaled_sums, rows("x"), replicas(s), updates(assign(s, sum)))(x);
  EXPECT_THAT(alone.get_value(0, s).to_vector<float>(), ElementsAre(10, 10));
}

tensor column_means(const tensor& x) {
  auto made = column_sums(x);
  for (auto& each : made.span<float>()) each /= static_cast<float>(x.rows());
  return made;
}
tensor column_maxima(const tensor& x) {
  auto made = x.row(0).clone();
  for (std::size_t row = 1; row < x.rows(); ++row) {
    for (std::size_t column = 0; column < made.size(); ++column) {
      made.at<float>(column) = std::max(made.at<float>(column), x.at<float>(row, column));
    }
  }
  return made;
}
std::tuple<tensor, tensor, tensor> three_of_product(const tensor& x, const tensor& y) {
  const auto made = product(x, y);
  return {column_means(made), column_sums(made), column_maxima(made)};
}

TEST(WorldAcceptance, ThreeOutputsAreTheSerialOnesForAnyNumberOfSlices) {
  auto x = noise({1000, 10});
  for (auto& each : x.span<float>()) each *= 0.01F;
  const auto y = noise({10, 5}, 3);
  const auto expected = three_of_product(x, y);
  in_worlds({1, 2, 3, 4}, [&](world& w) {
    const auto& [mean, sums, most] = expected;
    auto f = w.function(three_of_product, rows("x"), whole("y"), outputs(avg("mean"), sum("sum"), max("max")));
    for (const unsigned slices : {1U, 2U, 3U, 4U, 7U, 1000U}) {
      const auto found = f.with({.num_slices = slices})(x, y);
      expect_close(std::get<0>(found), mean);
      expect_close(std::get<1>(found), sums);
      EXPECT_THAT(std::get<2>(found).to_vector<float>(), ElementsAreArray(most.to_vector<float>()));
      const auto again = f.with({.num_slices = slices})(x, y);
      EXPECT_EQ(std::get<0>(again).to_vector<float>(), std::get<0>(found).to_vector<float>()) << "not the same bits";
    }
  });
}

tensor rows_of(const tensor& x, const std::vector<std::int64_t>& which) {
  auto made = tensor::empty(x.dtype(), {which.size(), x.shape()[1]});
  for (std::size_t row = 0; row < which.size(); ++row) {
    made.row(row).copy_from(x.row(static_cast<std::size_t>(which[row])));
  }
  return made;
}
std::vector<std::int64_t> numbers(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> made(static_cast<std::size_t>(last - first));
  std::iota(made.begin(), made.end(), first);
  return made;
}
std::vector<std::int64_t> drawn(std::size_t count, std::size_t length, std::uint32_t seed) {
  std::vector<std::int64_t> made;
  for (const auto each : noise({count}, seed).span<float>()) {
    made.push_back(static_cast<std::int64_t>(each * static_cast<float>(length)));
  }
  made[1] = made[0];  // a repeat
  return made;
}

float weighted(const tensor& x, const tensor& weights, const tensor& y) {
  const auto a = product(x, y);
  const auto b = product(weights, y);
  double sum = 0;
  for (std::size_t index = 0; index < a.size(); ++index) {
    sum += static_cast<double>(a.span<float>()[index]) * static_cast<double>(b.span<float>()[index]);
  }
  return static_cast<float>(sum);
}

TEST(WorldAcceptance, BatchesSelectRowsAndMinibatchesHoldJustThose) {
  const auto x = noise({1000, 10});
  const auto y = noise({10, 1}, 3);
  const data weights({.value = noise({100, 10}, 5), .minibatch = true, .name = "weights"});
  const std::vector<std::pair<row_selection, std::vector<std::int64_t>>> batches = {
      {100, numbers(0, 100)}, {row_range{100, 200}, numbers(100, 200)}, {drawn(100, 1000, 9), drawn(100, 1000, 9)}};
  in_worlds({1, 2, 3, 4}, [&](world& w) {
    auto f = w.function(weighted, rows("x", "weights"), whole("y"), outputs(sum("sum")));
    for (const auto& [batch, selected] : batches) {
      const auto expected = weighted(rows_of(x, selected), weights.value(), y);
      for (const unsigned slices : {1U, 4U}) {
        EXPECT_NEAR(f.with({.batch = batch, .num_slices = slices})(x, weights, y), expected, 1e-6F * expected);
      }
    }
  });
}

TEST(WorldAcceptance, WhereAllInputsAreMinibatchesTheBatchMayBeAnywhere) {
  world w({.ranks = 2});
  auto f = w.function([](const tensor& x) { return x; }, rows("x"), outputs(gather("x")));
  const data x({.value = tensor::arange<float>(0, 100), .minibatch = true});
  EXPECT_EQ(f.with({.batch = row_range{100, 200}})(x).to_vector<float>(), x.value().to_vector<float>());
  EXPECT_EQ(f.with({.batch = row_range{950, 953}})(x).to_vector<float>(), (std::vector<float>{0, 1, 2}));
}

TEST(WorldAcceptance, ResidentRowsAreSelectedInEveryRankOrInEachDifferently) {
  in_worlds({1, 2, 3, 4}, [](world& w) {
    const auto all = noise({200 * w.ranks(), 3});
    auto d = w.scattered("d", all);
    auto f = w.function([](const tensor& x) { return std::tuple(column_sums(x), x); }, sliceable(d),
                        outputs(sum("sum"), gather("rows")));
    const auto check = [&](const resident_selection& chosen, const std::vector<std::vector<std::int64_t>>& by_rank) {
      std::vector<std::int64_t> expected;
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
        for (const auto row : by_rank[rank]) expected.push_back(row + static_cast<std::int64_t>(200 * rank));
      }
      for (const unsigned slices : {1U, 4U}) {
        const auto [sums, found] = f.with({.batch_s = chosen, .num_slices = slices})();
        expect_close(sums, column_sums(rows_of(all, expected)));
        EXPECT_EQ(found.to_vector<float>(), rows_of(all, expected).to_vector<float>());
      }
    };
    const auto everywhere = [&](const auto& rows) { return std::vector(w.ranks(), rows); };
    check({}, everywhere(numbers(0, 200)));
    check(row_range{100, 200}, everywhere(numbers(100, 200)));
    check(drawn(100, 200, 11), everywhere(drawn(100, 200, 11)));
    std::vector<row_selection> ranges;
    std::vector<row_selection> lists;
    std::vector<std::vector<std::int64_t>> in_ranges;
    std::vector<std::vector<std::int64_t>> in_lists;
    for (std::uint32_t rank = 0; rank < w.ranks(); ++rank) {
      ranges.emplace_back(row_range{rank, rank + 100});
      in_ranges.push_back(numbers(rank, rank + 100));
      in_lists.push_back(drawn(10 + 7 * rank, 200, rank + 1));  // of unequal lengths
      lists.emplace_back(in_lists.back());
    }
    check(ranges, in_ranges);
    check(lists, in_lists);
  });
}

TEST(WorldAcceptance, SelectedResidentRowsAreGatheredByRank) {
  auto values = tensor::empty<float>({200, 2});
  for (std::size_t row = 0; row < 200; ++row) values.row(row).fill(static_cast<float>(row));
  for (const auto who : {test::caller::first, test::caller::last, test::caller::none}) {
    world w(test::options_for(2, who));
    auto d = w.scattered("d", values);
    auto f = w.function([](const tensor& x) { return x; }, sliceable(d), outputs(gather("rows")));
    const auto numbers_in = [](const tensor& found) {
      EXPECT_EQ(found.shape()[1], 2U);
      std::vector<int> made;
      for (std::size_t row = 0; row < found.rows(); ++row) {
        EXPECT_EQ(found.at<float>(row, 0), found.at<float>(row, 1));
        made.push_back(static_cast<int>(found.at<float>(row, 0)));
      }
      return made;
    };
    EXPECT_THAT(numbers_in(f.with({.batch_s = std::vector<int>{49, 23, 1, 7, 23}})()),
                ElementsAre(49, 23, 1, 7, 23, 149, 123, 101, 107, 123));
    std::vector<int> every(200);
    std::iota(every.begin(), every.end(), 0);
    EXPECT_EQ(numbers_in(f.with({.num_slices = 3})()), every);
    EXPECT_THAT(numbers_in(f.with({.batch_s = std::vector<row_selection>{std::vector{0, 1, 2, 3, 4, 5},
                                                                         std::vector{10, 11, 12, 13, 14, 15}}})()),
                ElementsAre(0, 1, 2, 3, 4, 5, 110, 111, 112, 113, 114, 115));
    std::vector<int> middle(28);
    std::iota(middle.begin(), middle.begin() + 14, 3);
    std::iota(middle.begin() + 14, middle.end(), 103);
    EXPECT_EQ(numbers_in(f.with({.batch_s = row_range{3, 17}})()), middle);
  }
}

TEST(WorldAcceptance, TheMeanOfRowsIsExactForAnyNumberOfRanksAndSlices) {
  const auto x = tensor::arange<float>(0, 101);
  in_worlds({1, 2, 3, 4, 5, 6, 7, 8}, [&](world& w) {
    auto f = w.function([](const tensor& part) { return total(part) / static_cast<float>(part.rows()); }, rows("x"),
                        outputs(avg("mean")));
    for (unsigned slices = 1; slices <= 101; ++slices) ASSERT_EQ(f.with({.num_slices = slices})(x), 50.0F) << slices;
  });
}

template <class T>
tensor rows_added(const tensor& x) {
  double sum = 0;
  for (const auto each : x.span<T>()) sum += static_cast<double>(static_cast<float>(each));
  return tensor::full<T>({1}, T(static_cast<float>(sum)));
}

// The four rows one by one, in every way.
template <class T>
void expect_sum(std::initializer_list<float> values, float expected) {
  std::vector<T> all;
  for (const auto each : values) all.push_back(T(each));
  in_worlds({1, 2, 4}, [&](world& w) {
    const auto slices = static_cast<unsigned>(4 / w.ranks());
    auto f = w.function(rows_added<T>, rows("x"), outputs(sum("sum")));
    EXPECT_EQ(static_cast<float>(f.with({.num_slices = slices})(tensor::from(all)).template at<T>(0)), expected);
    EXPECT_EQ(static_cast<float>(f.with({.num_slices = 4}).local(tensor::from(all)).template at<T>(0)), expected);
  });
}

TEST(WorldAcceptance, SumsOfFractionsAreRoundedOnceForAnyNumberOfRanksAndSlices) {
  expect_sum<f16>({40000, 40000, -40000, -40000}, 0);
  expect_sum<bf16>({256, 1, 1, 0}, 258);
  expect_sum<float>({16777216, 1, 1, 0}, 16777218);  // 2^24, to which a float cannot add 1
}

TEST(WorldAcceptance, RanksOfOneSliceAndOfSeveralAreSummedTogether) {
  world w({.ranks = 2});
  auto f = w.function(rows_added<float>, rows("x"), outputs(sum("sum")));
  const std::vector<float> both[] = {{16777216, 1, 1}, {1, 1, 16777216}};
  for (const auto& rows : both) EXPECT_EQ(f.with({.num_slices = 2})(tensor::from(rows)).at<float>(0), 16777218);
}

TEST(WorldAcceptance, WhoHasNoRowsDoesNotComputeAndIsNotCounted) {
  const auto measure = [](const tensor& x, const tensor& seen) {
    test::visits::add(seen);
    const auto value = x.at<float>(0);
    return std::tuple(value, value, value, value, value, x);
  };
  in_worlds({4, 4, 4, 8}, [&](world& w) {
    auto f = w.function(measure, rows("x"), whole("seen"),
                        outputs(sum("sum"), prod("prod"), avg("avg"), min("min"), max("max"), gather("rows")));
    const test::visits seen;
    const auto [sum, prod, avg, min, max, rows] = f(tensor::full<float>({1}, 7), seen.shared());
    EXPECT_THAT((std::array{sum, prod, avg, min, max}), ElementsAre(7, 7, 7, 7, 7));
    EXPECT_THAT(rows.to_vector<float>(), ElementsAre(7));
    EXPECT_EQ(seen.count(), 1);

    const auto nothing = tensor::empty<float>({0});
    EXPECT_EQ((f.only<0, 1>()(nothing, seen.shared())), std::tuple(0.0F, 1.0F));
    EXPECT_EQ(f.only<5>()(nothing, seen.shared()).size(), 0U);
    EXPECT_THAT(test::refusal([&] { f.only<2>()(nothing, seen.shared()); }), testing::HasSubstr("'avg'"));
    EXPECT_THAT(test::refusal([&] { f.only<3>()(nothing, seen.shared()); }), testing::HasSubstr("'min'"));
    EXPECT_THAT(test::refusal([&] { f.only<4>()(nothing, seen.shared()); }), testing::HasSubstr("'max'"));
    EXPECT_EQ(seen.count(), 1);
    EXPECT_EQ(f.only<0>()(tensor::full<float>({3}, 2), seen.shared()), 6.0F);
  });
}

// Of tensors nobody knows dtype and shape.
TEST(WorldAcceptance, OfNoRowsTensorsAreF32WithoutDimensionsAndAProductOfIntegersIsOne) {
  const auto of_rows = [](const tensor& x) {
    const auto sums = tensor::full<std::int64_t>({2, 3}, static_cast<std::int64_t>(x.rows()));
    return std::tuple(sums, sums, sums, sums, std::int64_t{7}, std::uint8_t{7});
  };
  in_worlds({1, 2, 3}, [&](world& w) {
    auto f = w.function(of_rows, rows("x"),
                        outputs(sum("sum"), prod("prod"), gather("rows"), none("each"), sum("zero"), prod("one")));
    const auto nothing = tensor::empty<double>({0, 4});
    for (const bool is_run_here : {false, true}) {
      const auto [sums, product, gathered, each, zero, one] = is_run_here ? f.local(nothing) : f(nothing);
      for (const auto& number : {sums, product}) {
        EXPECT_EQ(number.dtype(), dtype::f32);
        EXPECT_EQ(number.shape(), tensor_shape{});
      }
      EXPECT_EQ(sums.item<float>(), 0);
      EXPECT_EQ(product.item<float>(), 1);
      EXPECT_EQ(gathered.dtype(), dtype::f32);
      EXPECT_EQ(gathered.shape(), tensor_shape{0});
      EXPECT_TRUE(each.empty());
      EXPECT_EQ(zero, 0);
      EXPECT_EQ(one, 1);
    }
  });
}

TEST(WorldAcceptance, OutputsComeInTheOrderAskedFor) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto f = w.function(
        [](const tensor& x) { return std::tuple(total(x), static_cast<int>(x.rows()), std::string("here")); },
        rows("x"), outputs(sum("total"), sum("rows"), none("where")));
    const auto x = tensor::arange<float>(0, 10);
    const std::vector<std::string> where(w.ranks(), "here");
    EXPECT_EQ((f.only<2, 0>()(x)), std::tuple(where, 45.0F));
    EXPECT_EQ((f.only<0, 0>()(x)), std::tuple(45.0F, 45.0F));
    EXPECT_EQ(f.only<1>()(x), 10);
    EXPECT_EQ(f(x), std::tuple(45.0F, 10, where));
  });
}

TEST(WorldAcceptance, AveragesOfIntegersHaveFractions) {
  in_worlds({1, 3}, [](world& w) {
    auto f = w.function(
        [](const tensor& x) {
          int sum = 0;
          auto sums = tensor::zeros<int>({2});
          for (const auto each : x.span<int>()) sum += each;
          sums.fill(sum);
          return std::tuple(sum, sums, sum);
        },
        rows("x"), outputs(avg("number"), avg("tensor"), mean_of_ranks("ranks")));
    const auto x = tensor::from<int>({1, 2, 3, 4}, {4});
    const auto [number, elements, by_rank] = f(x);
    static_assert(std::is_same_v<decltype(number), const double>);
    const auto shares = w.ranks() == 1 ? 40.0 : 1 * 1.0 + 1 * 2.0 + 2 * 7.0;  // rows times what they give
    EXPECT_EQ(number, shares / 4);
    EXPECT_THAT(elements.to_vector<double>(), ElementsAre(shares / 4, shares / 4));
    EXPECT_EQ(by_rank, 10.0 / static_cast<double>(w.ranks()));
  });
}

template <tensor_element T>
void expect_rows_back(world& w, dtype type) {
  SCOPED_TRACE(testing::Message() << type);
  auto f = w.function([](const tensor& x) { return x; }, rows("x"), outputs(gather("x")));
  auto x = tensor::empty(type, {11, 3});
  for (std::size_t index = 0; index < 33; ++index) x.at<T>(index / 3, index % 3) = T(static_cast<float>(index % 2));
  const auto same = f.with({.num_slices = 2})(x);
  EXPECT_EQ(same.dtype(), type);
  EXPECT_TRUE(std::ranges::equal(std::span(same.data(), same.nbytes()), std::span(x.data(), x.nbytes())));
  const auto some = f.with({.batch = std::vector{10, 0, 10}})(x);
  EXPECT_EQ(some.shape(), (tensor_shape{3, 3}));
  EXPECT_TRUE(std::ranges::equal(std::span(some.row(2).data(), some.row(2).nbytes()),
                                 std::span(x.row(10).data(), x.row(10).nbytes())));
}

TEST(WorldAcceptance, RowsOfEveryTypeGoOutAndComeBack) {
  in_worlds({3, 2}, [](world& w) {
    expect_rows_back<bool>(w, dtype::boolean);
    expect_rows_back<std::int8_t>(w, dtype::i8);
    expect_rows_back<std::int16_t>(w, dtype::i16);
    expect_rows_back<std::int32_t>(w, dtype::i32);
    expect_rows_back<std::int64_t>(w, dtype::i64);
    expect_rows_back<std::uint8_t>(w, dtype::u8);
    expect_rows_back<std::uint16_t>(w, dtype::u16);
    expect_rows_back<std::uint32_t>(w, dtype::u32);
    expect_rows_back<std::uint64_t>(w, dtype::u64);
    expect_rows_back<f16>(w, dtype::f16);
    expect_rows_back<bf16>(w, dtype::bf16);
    expect_rows_back<float>(w, dtype::f32);
    expect_rows_back<double>(w, dtype::f64);
    expect_rows_back<std::complex<float>>(w, dtype::c64);
    expect_rows_back<std::complex<double>>(w, dtype::c128);
  });
}

TEST(WorldAcceptance, WholeInputsMayBeNumbersTextsContainersAndTensors) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto f = w.function(
        [](const tensor& x, double rate, const std::string& text, const std::map<int, std::string>& names,
           const tensor& y) {
          return static_cast<double>(x.rows()) * rate + static_cast<double>(text.size() + names.at(3).size()) +
                 static_cast<double>(y.item<float>());
        },
        rows("x"), whole("rate", "text", "names", "y"), outputs(none("each")));
    const auto found = f(tensor::arange<float>(0, 12), 0.5, "four", std::map<int, std::string>{{3, "three"}},
                         tensor::full<float>({}, 2));
    EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0.0), 6 + 11.0 * static_cast<double>(w.ranks()));
  });
}

TEST(WorldAcceptance, InputsMayLieInAnyMemoryAndOrder) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto f = w.function([](const tensor& x) { return x; }, rows("x"), outputs(gather("x")));
    const auto local = tensor::arange<float>(0, 24, 1, memory::local).reshape({6, 4});
    EXPECT_EQ(f(local).to_vector<float>(), local.to_vector<float>());
    const auto shared = local.clone();
    const auto columns = shared.slice(1, 3, 1);
    EXPECT_EQ(f(columns).to_vector<float>(), columns.to_vector<float>());
    EXPECT_THAT(f.with({.batch = std::vector{5, 0}, .num_slices = 2})(columns).to_vector<float>(),
                ElementsAre(21, 22, 1, 2));
    EXPECT_EQ(f(shared.slice(2, 5)).to_vector<float>(), shared.slice(2, 5).to_vector<float>());
  });
}

tensor kept_before(const tensor& x) {
  static tensor kept;
  return std::exchange(kept, x).clone();
}

TEST(WorldAcceptance, WhatAFunctionKeepsStaysGood) {
  world w(test::options_for(3, test::caller::none));  // what is kept here would be there until the program ends
  auto f = w.function(kept_before, rows("x"), outputs(gather("before")));
  f(tensor::arange<float>(0, 12));
  for (int round = 1; round < 20; ++round) {
    const auto first = 12.0F * static_cast<float>(round);
    const auto x = tensor::arange<float>(first, first + 12);
    EXPECT_EQ(f(x).to_vector<float>(), tensor::arange<float>(first - 12, first).to_vector<float>());
  }
}

/// A tensor that is a part of something.
struct snapshot {
  tensor value;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
  }
};

TEST(WorldAcceptance, TensorsInsideOfWhatNoneGivesAreTheCallersOwn) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto v = w.replicate("v", tensor::zeros<float>({4}));
    auto f = w.function(
        [](const tensor& x, const tensor& now) {
          return std::tuple(snapshot{now}, std::vector{now, x}, std::optional(now), tensor::ones<float>({4}));
        },
        rows("x"), replicas(v), outputs(none("struct"), none("list"), none("perhaps")), updates(reduced_into(v, sum)));
    const auto x = tensor::full<float>({6}, 5);
    const auto [structs, lists, perhaps] = f(x);
    for (int call = 0; call < 2; ++call) f(tensor::ones<float>({6}));
    x.fill(9);
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      EXPECT_THAT(structs[rank].value.to_vector<float>(), Each(0));
      EXPECT_THAT(lists[rank][0].to_vector<float>(), Each(0));
      EXPECT_THAT(lists[rank][1].to_vector<float>(), Each(5));
      EXPECT_THAT(perhaps[rank]->to_vector<float>(), Each(0));
    }
  });
}

TEST(WorldAcceptance, AnOutputThatIsAskedForTwiceComesWithElementsOfItsOwn) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto f = w.function(
        [](const tensor& x) {
          return std::tuple(column_sums(x), x, x, std::vector{snapshot{x}}, total(x), std::string("text"));
        },
        rows("x"), outputs(sum("sum"), gather("rows"), none("parts"), none("structs"), sum("total"), none("text")));
    const auto x = tensor::ones<float>({8, 2});
    auto [a, b] = f.only<0, 0>()(x);
    a.fill(0.0F);
    EXPECT_THAT(b.to_vector<float>(), ElementsAre(8, 8));
    auto [first, parts, second, others, third] = f.only<1, 2, 1, 2, 1>()(x);
    first.fill(0.0F);
    for (const auto& each : parts) each.fill(0.0F);
    second.fill(2.0F);
    EXPECT_THAT(third.to_vector<float>(), Each(1));
    for (const auto& each : others) EXPECT_THAT(each.to_vector<float>(), Each(1));
    auto [structs, copies] = f.only<3, 3>()(x);
    for (const auto& each : structs) each[0].value.fill(0.0F);
    for (const auto& each : copies) EXPECT_THAT(each[0].value.to_vector<float>(), Each(1));
    EXPECT_EQ((f.only<4, 5, 4, 5>()(x)), std::tuple(16.0F, std::vector<std::string>(w.ranks(), "text"), 16.0F,
                                                    std::vector<std::string>(w.ranks(), "text")));
    EXPECT_THAT(x.to_vector<float>(), Each(1));
  });
}

// Each in a piece of shared memory they would take 125 MiB.
TEST(WorldAcceptance, ManySmallSlicesComeInASmallArena) {
  const auto small = domain::of_program({.arena_bytes = std::size_t{16} << 20U});
  in_worlds({2, 3}, [](world& w) {
    auto f = w.function([](const tensor& x) { return std::tuple(x, x, x.clone(), x.clone(memory::local)); }, rows("x"),
                        outputs(gather("rows"), none("parts"), gather("copies"), none("local")));
    const auto x = tensor::arange<float>(0, 2000);
    const auto [rows_of_all, parts, copies, local] = f.with({.num_slices = 2000})(x);
    EXPECT_EQ(rows_of_all.to_vector<float>(), x.to_vector<float>());
    EXPECT_EQ(copies.to_vector<float>(), x.to_vector<float>());
    ASSERT_EQ(parts.size(), 2000U);
    ASSERT_EQ(local.size(), 2000U);
    for (std::size_t row = 0; row < 2000; ++row) {
      EXPECT_EQ(parts[row].item<float>(), static_cast<float>(row));
      EXPECT_EQ(local[row].item<float>(), static_cast<float>(row));
    }
    const auto again = f.only<1, 1>().with({.num_slices = 2000})(x);
    std::get<0>(again)[7].fill(0.0F);
    EXPECT_EQ(std::get<1>(again)[7].item<float>(), 7.0F);
  });
}

TEST(WorldAcceptance, SlicesOfAllSizesAreGatheredInTheirOrder) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto f = w.function(
        [](const rank_context& context, const tensor& x) {
          return tensor::full<float>({context.slice % 2 == 0 ? 20'000U : 3U}, x.at<float>(0));  // 80 KB, or few
        },
        rows("x"), outputs(gather("rows")));
    const auto x = tensor::arange<float>(0, 24);
    for (const unsigned slices : {1U, 2U, 5U}) {
      std::vector<float> expected;
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
        const auto share = part_of({0, 24}, rank, w.ranks());
        for (std::size_t slice = 0; slice < slices; ++slice) {
          const auto first = static_cast<float>(share.first + part_of({0, share.size()}, slice, slices).first);
          expected.insert(expected.end(), slice % 2 == 0 ? 20'000 : 3, first);
        }
      }
      EXPECT_EQ(f.with({.num_slices = slices})(x).to_vector<float>(), expected) << slices;
    }
  });
}

const event& own_event() {
  static const event made;
  return made;
}

TEST(WorldAcceptance, HandlesInsideOfWhatNoneGivesAreTheRanks) {
  world w(test::options_for(3, test::caller::none));  // what is kept here would be there until the program ends
  auto f = w.function([] { return own_event(); }, outputs(none("events")));
  auto is_set = w.function([] { return own_event().is_set() ? 1 : 0; }, outputs(none("are set")));
  EXPECT_THAT(is_set(), Each(0));
  for (const auto& each : f()) each.set();
  EXPECT_THAT(is_set(), Each(1));
}

/// A tensor and a handle that are parts of something.
struct letter {
  tensor value;
  event read;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value, read);
  }
};

TEST(WorldAcceptance, HandlesGoIntoAFunctionAndOutOfItAlsoWhereItIsRunHere) {
  in_worlds({1, 3}, [](world& w) {
    auto f = w.function(
        [](const tensor& x, const event& begun, const letter& sent) {
          begun.set();
          sent.read.set();
          return std::tuple(total(x) * sent.value.at<float>(1), begun, sent);
        },
        rows("x"), whole("begun", "sent"), outputs(sum("sum"), none("events"), none("letters")));
    const event begun;
    const letter sent{.value = tensor::full<float>({3}, 2), .read = event()};
    for (const bool is_run_here : {true, false}) {
      const auto x = tensor::ones<float>({12});
      const auto [all, events, letters] = is_run_here ? f.local(x, begun, sent) : f(x, begun, sent);
      EXPECT_EQ(all, 24);
      EXPECT_EQ(events.size(), is_run_here ? 1U : w.ranks());
      EXPECT_EQ(letters.size(), events.size());
      EXPECT_TRUE(begun.is_set());
      EXPECT_TRUE(sent.read.is_set());
      for (const auto& each : events) each.clear();
      for (const auto& each : letters) {
        each.read.clear();
        each.value.fill(5.0F);  // his own
      }
      EXPECT_FALSE(begun.is_set());
      EXPECT_FALSE(sent.read.is_set());
      EXPECT_THAT(sent.value.to_vector<float>(), Each(2));
    }
  });
}

// Each has a call's header of its own, and gets no other's.
TEST(WorldAcceptance, AGroupBesideAWorldHasItsOwnCalls) {
  world w({.ranks = 2});
  auto f = w.function([](const tensor& x) { return total(x); }, rows("x"), outputs(sum("sum")));
  const group_ticket ticket(2);
  std::thread other([&] {
    group second(ticket, 1);
    for (int round = 0; round < 20; ++round) second.all_reduce(tensor::ones<float>({100}));
  });
  {
    group first(ticket, 0);
    for (int round = 0; round < 20; ++round) {
      const auto x = tensor::ones<float>({100});
      first.all_reduce(x);
      EXPECT_EQ(x.at<float>(99), 2);
      EXPECT_EQ(f(x), 200);
    }
    other.join();
  }
}

TEST(WorldAcceptance, WorldsThatCannotBeAreRefused) {
  EXPECT_THAT(test::refusal([] { world({.ranks = 257}); }), testing::HasSubstr("257"));
  const auto no_machine = device_choice({device::cuda(1)}).on_machine("/dev/null");
  EXPECT_THAT(test::refusal([&] { world({.ranks = 2, .devices = no_machine}); }), testing::HasSubstr("cuda:1"));
  for (const bool computes : {true, false}) {
    EXPECT_THAT(test::refusal([&] { world({.ranks = 2, .master_rank = 2, .caller_computes = computes}); }),
                testing::HasSubstr("master_rank = 2"));
  }
  world any;
  EXPECT_GE(any.ranks(), 1U);
}

}  // namespace
}  // namespace muster::acceptance_test
