// SPDX-License-Identifier: BSL-1.0
// How many values are true, and what is said where bools are averaged; bools whose bytes others have written.
#include <cstdint>
#include <tuple>
#include <vector>

#include <muster/device/detail/convert.hpp>
#include <muster/device/tensor_compare.hpp>

#include "world_support.hpp"

namespace muster::count_true_test {
namespace {

using test::in_worlds;
using test::refusal;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Of rows of three, by column.
tensor any_above(const tensor& x, std::int64_t limit) {
  const auto made = tensor::zeros<bool>({3}, memory::local);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      if (x.at<std::int64_t>(row, column) > limit) made.at<bool>(column) = true;
    }
  }
  return made;
}
std::tuple<bool, float, std::int8_t, tensor, tensor, tensor> hits(const tensor& x) {
  const auto found = any_above(x, 10);
  return {found.at<bool>(0), 3e-39F, std::int8_t{-1}, found, convert(found, dtype::f32), found};
}

TEST(CountTrue, OfBoolsNumbersAndTensorsIsHowManyAreTrueInAllSlicesAndRanks) {
  in_worlds({1, 2, 3}, [](world& w) {
    const auto f = w.function(hits, rows("x"),
                              outputs(count_true("bools"), count_true("numbers"), count_true(), count_true("tensors"),
                                      count_true(), sum("any")));
    const auto x = tensor::arange<std::int64_t>(0, 36).reshape({12, 3});  // above 10 from the fourth row's second on
    const auto [bools, numbers, bytes, tensors, fractions, any] = f.with({.num_slices = 12})(x);
    static_assert(std::is_same_v<decltype(bools), const std::int64_t>);
    EXPECT_EQ(bools, 8);
    EXPECT_EQ(numbers, 12);
    EXPECT_EQ(bytes, 12);
    EXPECT_EQ(tensors.dtype(), dtype::i64);
    EXPECT_THAT(tensors.to_vector<std::int64_t>(), ElementsAre(8, 8, 9));
    EXPECT_THAT(fractions.to_vector<std::int64_t>(), ElementsAre(8, 8, 9));
    EXPECT_THAT(any.to_vector<bool>(), ElementsAre(true, true, true));
    const auto once = std::get<3>(f(x.slice(0, w.ranks())));
    EXPECT_THAT(once.to_vector<std::int64_t>(), ElementsAre(0, 0, 0));
  });
}

TEST(CountTrue, OfNoRowsIsZero) {
  in_worlds({2}, [](world& w) {
    const auto f = w.function(hits, rows("x"),
                              outputs(count_true(), count_true(), count_true(), count_true(), count_true(), sum()));
    const auto found = f(tensor::zeros<std::int64_t>({0, 3}));
    EXPECT_EQ(std::get<0>(found), 0);
    EXPECT_EQ(std::get<3>(found).dtype(), dtype::i64);
    EXPECT_EQ(std::get<3>(found).item<std::int64_t>(), 0);
  });
}

TEST(CountTrue, IsTakenByVariablesOfI64) {
  in_worlds({1, 2, 3}, [](world& w) {
    const auto own = w.replicate("own", tensor::full<std::int64_t>({3}, 100));
    const auto all = w.replicate("all", tensor::zeros<std::int64_t>({3}));
    const auto count = [](const tensor& x) { return std::tuple(any_above(x, -1), any_above(x, -1)); };
    const auto f = w.function(count, rows("x"), updates(increment(own, count_true), reduced_into(all, count_true)));
    f.with({.num_slices = 2})(tensor::arange<std::int64_t>(0, 36).reshape({12, 3}));
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      EXPECT_THAT(w.get_value(rank, own).to_vector<std::int64_t>(), Each(102)) << rank;
      EXPECT_THAT(w.get_value(rank, all).to_vector<std::int64_t>(), Each(2 * static_cast<std::int64_t>(w.ranks())));
    }
  });
}

TEST(CountTrue, IsRefusedForOtherVariables) {
  in_worlds({1}, [](world& w) {
    const auto flags = w.replicate("flags", tensor::zeros<bool>({3}));
    const auto numbers = w.replicate("numbers", tensor::zeros<float>({3}));
    const auto f = [](const tensor& x) { return any_above(x, 0); };
    for (const auto& which : {flags, numbers}) {
      for (const auto& update :
           {assign(which, count_true), increment(which, count_true), reduced_into(which, count_true)}) {
        EXPECT_THAT(refusal([&] { static_cast<void>(w.function(f, rows("x"), updates(update))); }),
                    AllOf(HasSubstr("count_true"), HasSubstr("is i64")));
      }
    }
    EXPECT_THAT(refusal([&] { static_cast<void>(w.reduce(numbers, count_true)); }), HasSubstr("count_true"));
  });
}

TEST(CountTrue, WhereBoolsAreAveragedIsSaidWhatToDo) {
  in_worlds({2}, [](world& w) {
    const auto flags = w.replicate("flags", tensor::zeros<bool>({3}));
    const auto f = w.function([](const tensor& x) { return any_above(x, 0); }, rows("x"), outputs(avg("hits")));
    try {
      static_cast<void>(f(tensor::zeros<std::int64_t>({4, 3})));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::exception& failure) {
      EXPECT_THAT(failure.what(),
                  AllOf(HasSubstr("'hits'"), HasSubstr("convert() them to f32"), HasSubstr("count_true")));
    }
    EXPECT_THAT(refusal([&] { static_cast<void>(w.reduce(flags)); }), HasSubstr("convert() them to f32"));
  });
}

// Bools as another library, or a broken process, may leave them.
tensor written_by_others(const tensor& x) {
  const auto made = tensor::zeros<bool>({x.rows()});
  for (std::size_t row = 0; row < x.rows(); ++row) {
    made.data()[row] = static_cast<std::byte>(x.at<std::uint8_t>(row));
  }
  return made;
}

TEST(BoolBytesOfWorlds, EveryByteButZeroIsTrue) {
  in_worlds({1, 2, 3}, [](world& w) {
    const auto join = [](const tensor& x) {
      return std::tuple(written_by_others(x), written_by_others(x), written_by_others(x), written_by_others(x));
    };
    const auto f = w.function(join, whole("x"), outputs(sum(), prod(), count_true(), gather()));
    const auto x = tensor::from<std::uint8_t>({2, 0, 255, 1}, {4});
    const auto [some, every, how_many, all] = f.with({})(x);
    const auto ranks = static_cast<std::int64_t>(w.ranks());
    EXPECT_THAT(some.to_vector<bool>(), ElementsAre(true, false, true, true));
    EXPECT_THAT(every.to_vector<bool>(), ElementsAre(true, false, true, true));
    EXPECT_THAT(how_many.to_vector<std::int64_t>(), ElementsAre(ranks, 0, ranks, ranks));
    EXPECT_EQ(count_nonzero(all), 3 * w.ranks());
    const auto flags = w.replicate("flags", tensor::zeros<bool>({4}));
    const auto set = w.function(written_by_others, whole("x"), updates(reduced_into(flags, prod)));
    set(x);
    EXPECT_THAT(w.get_value(w.ranks() - 1, flags).to_vector<bool>(), ElementsAre(true, false, true, true));
  });
}

}  // namespace
}  // namespace muster::count_true_test
