// SPDX-License-Identifier: BSL-1.0
// Calls of a world's functions: what is refused, many functions, several threads and worlds, calls in the background.
#include <chrono>
#include <cmath>
#include <csignal>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include <muster/pool/pool.hpp>

#include "processes.hpp"
#include "world_support.hpp"

namespace muster::world_calls_test {
namespace {

using test::in_worlds;
using test::refusal;
using test::total;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

static_assert(!std::is_constructible_v<row_selection, bool>, "a bool is no number of rows");

float sum_of(const tensor& x) { return total(x); }

float seen_total(const tensor& x, const tensor& y, const tensor& seen) {
  test::visits::add(seen);
  return total(x) + total(y);
}

TEST(WorldCalls, WhatIsWrongWithInputsIsSaidBeforeAnyRankIsTold) {
  in_worlds({1, 2, 3, 4}, [](world& w) {
    auto f = w.function(seen_total, rows("x", "y"), whole("seen"), outputs(sum("sum")), named("picky"));
    auto g = w.function([](const tensor& seen) { test::visits::add(seen); }, whole("seen"));
    const test::visits seen;
    const auto x = tensor::ones<float>({10});
    const auto y = tensor::ones<float>({12});
    const data mini({.value = tensor::ones<float>({4}), .minibatch = true, .name = "mini"});
    const auto refused = [&](run_options options, const auto& first, const auto& second) {
      return refusal([&] { f.with(std::move(options))(first, second, seen.shared()); });
    };
    EXPECT_THAT(refused({}, x, y), AllOf(HasSubstr("'picky'"), HasSubstr("'x' has 10"), HasSubstr("'y' has 12")));
    EXPECT_THAT(refused({.batch = 11}, x, y), AllOf(HasSubstr("'x'"), HasSubstr("row 10"), HasSubstr("10 rows")));
    EXPECT_THAT(refused({.batch = row_range{3, 13}}, y, y),
                AllOf(HasSubstr("'x'"), HasSubstr("row 12"), HasSubstr("12 rows")));
    EXPECT_THAT(refused({.batch = std::vector{0, 11, 1}}, y, x),
                AllOf(HasSubstr("'y'"), HasSubstr("row 11"), HasSubstr("place 1"), HasSubstr("10 rows")));
    EXPECT_THAT(refused({.batch = std::vector{10}}, x, x), AllOf(HasSubstr("'x'"), HasSubstr("row 10")));
    EXPECT_THAT(refused({.batch = 5}, x, mini), AllOf(HasSubstr("'y'"), HasSubstr("4 rows"), HasSubstr("5")));
    EXPECT_THAT(refused({.num_slices = 0}, x, x), HasSubstr("num_slices = 0"));
    EXPECT_THAT(refused({.batch_s = row_range{0, 1}}, x, x), AllOf(HasSubstr("'picky'"), HasSubstr("sliceable")));
    EXPECT_THAT(refused({}, tensor::ones<float>({}), x), AllOf(HasSubstr("'x'"), HasSubstr("dimensions")));
    EXPECT_THAT(refusal([&] { g.with({.num_slices = 2})(seen.shared()); }), HasSubstr("num_slices = 2"));
    EXPECT_THAT(refusal([&] { g.with({.batch = 2})(seen.shared()); }), HasSubstr("batch"));
    EXPECT_EQ(seen.count(), 0);
    EXPECT_EQ(f(x, x, seen.shared()), 20.0F);
    EXPECT_EQ(f.profile().failed, 9U);
    EXPECT_EQ(seen.count(), static_cast<std::int64_t>(w.ranks()));
  });
}

std::tuple<float, tensor, tensor> products(const tensor& x, const tensor& y) {
  float sum_of_products = 0;
  for (std::size_t row = 0; row < x.rows(); ++row) sum_of_products += x.at<float>(row) * y.at<float>(row);
  return {sum_of_products, x, y};
}

TEST(WorldCalls, InputsOfDifferentLengthsGoTogetherWhereABatchIsInEach) {
  const auto x = tensor::arange<float>(0, 10);
  const auto y = tensor::arange<float>(100, 117);
  const data mini({.value = tensor::arange<float>(200, 212), .minibatch = true});  // more rows than are asked for
  const std::vector<std::pair<row_selection, std::vector<std::size_t>>> batches = {
      {7, {0, 1, 2, 3, 4, 5, 6}},
      {10, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
      {row_range{3, 9}, {3, 4, 5, 6, 7, 8}},
      {std::vector{9, 0, 4, 4, 8}, {9, 0, 4, 4, 8}}};
  in_worlds({1, 2, 3, 4}, [&](world& w) {
    auto f = w.function(products, rows("x", "y"), outputs(sum("sum"), gather("x"), gather("y")));
    const auto expect_serial = [](const auto& found, const std::vector<float>& first,
                                  const std::vector<float>& second) {
      EXPECT_EQ(std::get<0>(found), std::inner_product(first.begin(), first.end(), second.begin(), 0.0F));
      EXPECT_EQ(std::get<1>(found).template to_vector<float>(), first);
      EXPECT_EQ(std::get<2>(found).template to_vector<float>(), second);
    };
    for (const auto& [batch, chosen] : batches) {
      std::vector<float> of_x;
      std::vector<float> of_y;
      for (const auto row : chosen) {
        of_x.push_back(x.at<float>(row));
        of_y.push_back(y.at<float>(row));
      }
      const auto of_mini = mini.value().slice(0, chosen.size()).to_vector<float>();
      for (const unsigned slices : {1U, 3U}) {
        const auto g = f.with({.batch = batch, .num_slices = slices});
        expect_serial(g(x, y), of_x, of_y);
        expect_serial(g(y, x), of_y, of_x);
        expect_serial(g(mini, y), of_mini, of_y);
      }
    }
  });
}

TEST(WorldCalls, InputsOfAnotherTypeOrShapeThanSaidAreRefusedBeforeAnyRankIsTold) {
  in_worlds({1, 3}, [](world& w) {
    auto f = w.function(seen_total, rows(typed<float>("x", 1), typed<float>("y")), whole("seen"), outputs(sum("sum")),
                        named("picky"));
    const test::visits seen;
    const auto x = tensor::ones<float>({10});
    const auto refused = [&](const auto& first, const auto& second) {
      return refusal([&] { f(first, second, seen.shared()); });
    };
    EXPECT_THAT(refused(tensor::ones<double>({10}), x),
                AllOf(HasSubstr("'picky'"), HasSubstr("'x'"), HasSubstr("f64"), HasSubstr("must be f32")));
    EXPECT_THAT(refused(x.reshape({10, 1}), x),
                AllOf(HasSubstr("'x'"), HasSubstr("(10, 1)"), HasSubstr("must have 1")));
    EXPECT_THAT(refused(x, tensor::ones<std::int32_t>({10})), AllOf(HasSubstr("'y'"), HasSubstr("i32")));
    EXPECT_EQ(seen.count(), 0);
    EXPECT_EQ(f(x, x.reshape({10, 1}), seen.shared()), 20.0F);
  });
}

// Each names the function, the input, what was asked for, and how many rows there are; the next good call works.
TEST(WorldCalls, SelectionsOfNothingAndOfRowsBeforeTheFirstAreRefusedBeforeAnyRankIsTold) {
  in_worlds({1, 3}, [](world& w) {
    auto f = w.function(seen_total, rows("x", "y"), whole("seen"), outputs(sum("sum")), named("picky"));
    const test::visits seen;
    const data x({.value = tensor::ones<float>({10}), .name = "x"});
    const data minibatch({.value = tensor::ones<float>({10}), .minibatch = true});
    const auto refused = [&](const row_selection& batch) {
      const auto why = refusal([&] { f.with({.batch = batch})(x, x, seen.shared()); });
      EXPECT_THAT(why, AllOf(HasSubstr("function 'picky': input 'x'"), HasSubstr("10")));
      EXPECT_THAT(refusal([&] { f.with({.batch = batch})(minibatch, x, seen.shared()); }),
                  AllOf(HasSubstr("function 'picky': input 'x', a minibatch"), HasSubstr("10")));
      EXPECT_EQ(f.with({.batch = 5})(x, x, seen.shared()), 10);
      return why;
    };
    EXPECT_THAT(refused(0), HasSubstr("first 0 rows"));
    EXPECT_THAT(refused(-3), HasSubstr("first -3 rows"));
    EXPECT_THAT(refused(row_range{3, 1}), HasSubstr("rows 3 to before 1"));
    EXPECT_THAT(refused(row_range{3, 3}), HasSubstr("rows 3 to before 3"));
    EXPECT_THAT(refused(std::vector<int>{}), HasSubstr("empty list"));
    EXPECT_THAT(refused(std::vector{4, -1}), AllOf(HasSubstr("no row -1"), HasSubstr("place 1")));
    EXPECT_EQ(seen.count(), static_cast<std::int64_t>(6 * w.ranks())) << "the good calls'";
  });
}

TEST(WorldCalls, WhatIsWrongWithResidentRowsIsSaidBeforeAnyRankIsTold) {
  in_worlds({2, 3}, [](world& w) {
    auto d = w.scattered("d", tensor::ones<float>({10 * w.ranks()}));
    auto e = w.scattered("e", tensor::ones<float>({10 * w.ranks() + 1}));
    const auto count = [](const tensor& seen, const tensor& a, const tensor& b) {
      test::visits::add(seen);
      return static_cast<int>(a.rows() + b.rows());
    };
    auto f = w.function(count, whole("seen"), sliceable(d, e), outputs(sum("rows")), named("resident"));
    const test::visits seen;
    const auto refused = [&](const resident_selection& chosen) {
      return refusal([&] { f.with({.batch_s = chosen})(seen.shared()); });
    };
    EXPECT_THAT(refused({}), AllOf(HasSubstr("'resident'"), HasSubstr("rank "), HasSubstr("10 and 11")));
    EXPECT_THAT(refused(row_range{5, 11}), AllOf(HasSubstr("'d'"), HasSubstr("row 10"), HasSubstr("10 rows")));
    EXPECT_THAT(refused(std::vector{1, 10}), AllOf(HasSubstr("'d'"), HasSubstr("row 10"), HasSubstr("rank 0")));
    EXPECT_THAT(refused(std::vector<row_selection>(5, row_selection(2))), AllOf(HasSubstr("5"), HasSubstr("batch_s")));
    EXPECT_THAT(refused(0), AllOf(HasSubstr("'d'"), HasSubstr("rank 0"), HasSubstr("first 0 rows of its 10")));
    EXPECT_THAT(refused(row_range{3, 1}), AllOf(HasSubstr("'d'"), HasSubstr("rows 3 to before 1 of its 10")));
    EXPECT_THAT(refused(std::vector{1, -2}), AllOf(HasSubstr("'d'"), HasSubstr("no row -2"), HasSubstr("10 rows")));
    std::vector<row_selection> one_is_wrong(w.ranks(), row_selection(2));
    one_is_wrong[1] = row_selection(12);
    EXPECT_THAT(refused(one_is_wrong),
                AllOf(HasSubstr("'d'"), HasSubstr("rank 1"), HasSubstr("first 12 rows"), HasSubstr("row 10")));
    EXPECT_EQ(seen.count(), 0);
    EXPECT_EQ(f.with({.batch_s = 10})(seen.shared()), static_cast<int>(20 * w.ranks()));

    auto both = w.function([](const tensor& x, const tensor& r) { return total(x) + total(r); }, rows("x"),
                           sliceable(d), outputs(sum("sum")));
    const auto ranks = static_cast<float>(w.ranks());
    EXPECT_EQ(both(tensor::ones<float>({10 * w.ranks()})), 20 * ranks);
    EXPECT_EQ(both.with({.batch_s = row_range{2, 5}, .num_slices = 2})(tensor::ones<float>({3 * w.ranks()})),
              6 * ranks);
    EXPECT_THAT(refusal([&] { both.with({.batch_s = row_range{2, 5}})(tensor::ones<float>({4 * w.ranks()})); }),
                AllOf(HasSubstr("rank 0"), HasSubstr("4 rows"), HasSubstr("3")));
  });
}

std::tuple<float, std::size_t, std::size_t, tensor> sliced(const rank_context& context, const tensor& x) {
  return {total(x), context.slice, context.slices, x};
}

// Going through as many would take minutes.
TEST(WorldCalls, MoreSlicesThanRowsAreTheRowsOneByOne) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto f = w.function(sliced, rows("x"), outputs(sum("sum"), none("slice"), none("slices"), gather("x")));
    for (const std::size_t rows : {0U, 1U, 2U, 10U}) {
      SCOPED_TRACE(testing::Message() << rows << " rows");
      const auto x = tensor::arange<float>(1, 11).slice(0, rows);
      std::vector<std::size_t> expected_slice;
      std::vector<std::size_t> expected_slices;
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
        const auto share = part_of({0, rows}, rank, w.ranks()).size();
        for (std::size_t row = 0; row < share; ++row) expected_slice.push_back(row);
        expected_slices.insert(expected_slices.end(), share, share);
      }
      for (const auto asked : {10U, std::numeric_limits<unsigned>::max()}) {
        const auto [sum_of_all, slice, slices, gathered] = f.with({.num_slices = asked})(x);
        EXPECT_EQ(sum_of_all, total(x));
        EXPECT_EQ(slice, expected_slice);
        EXPECT_EQ(slices, expected_slices);
        EXPECT_EQ(gathered.to_vector<float>(), x.to_vector<float>());
      }
    }
  });
}

float total_and(int more, const tensor& x) { return total(x) + static_cast<float>(more); }

TEST(WorldCalls, AThousandFunctionsAreAddedAtAnyTime) {
  in_worlds({2, 3}, [](world& w) {
    const auto x = tensor::ones<float>({6});
    const auto make = [&](int more) {
      return w.function(bind_front(total_and, more), rows("x"), outputs(none("each")));
    };
    const auto check = [&](const auto& f, int more) {
      EXPECT_THAT(f(x), Each(6 / static_cast<float>(w.ranks()) + static_cast<float>(more)));
    };
    std::vector<decltype(make(0))> all;
    for (int index = 0; index < 1000; ++index) {
      all.push_back(make(index));
      if (index % 100 == 0) check(all.back(), index);
    }
    w.distribute();
    for (const int index : {0, 1, 500, 999}) check(all[static_cast<std::size_t>(index)], index);
  });
}

TEST(WorldCalls, DistributingAgainKeepsWhatTheRanksHave) {
  in_worlds({2, 3}, [](world& w) {
    auto v = w.replicate("v", tensor::zeros<float>({3}));
    auto f = w.function(
        [](const rank_context& context) { return tensor::full<float>({3}, static_cast<float>(context.rank)); },
        updates(assign(v)));
    f();
    for (int round = 0; round < 3; ++round) {
      w.distribute();
      auto g = w.function([](const tensor& value) { return value.at<float>(2); }, replicas(v), outputs(none("each")));
      w.distribute();
      const auto found = g();
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
        EXPECT_EQ(found[rank], static_cast<float>(rank));
        EXPECT_THAT(w.get_value(rank, v).to_vector<float>(), Each(static_cast<float>(rank)));
      }
    }
  });
}

/// Cannot be made anew where it arrives.
struct unwelcome {
  int rank = 0;
  void save(output_archive& out) const { out(rank); }
  void load(input_archive& /*in*/) { throw std::domain_error("not in this rank"); }
  void operator()() const {}
};

TEST(WorldCalls, DistributingTellsTheRanksOfAllFunctions) {
  in_worlds({2, 3, 4}, [](world& w) {
    auto f = w.function(sum_of, rows("x"), outputs(sum("sum")));
    w.distribute();
    {
      auto never = w.function(unwelcome{}, named("never"));
      EXPECT_THAT(
          test::text_of(errc::remote_exception, [&] { w.distribute(); }),
          AllOf(HasSubstr("not in this rank"), HasSubstr("'distribute'"), HasSubstr("'never'"), HasSubstr("rank ")));
    }
    w.distribute();
    EXPECT_EQ(f(tensor::ones<float>({9})), 9.0F);
    EXPECT_EQ(w.replaced_ranks(), 0U);
  });
}

TEST(WorldCalls, AFunctionThatCannotBeMadeInTheRanksFailsItsOwnCallsAlone) {
  in_worlds({2, 3}, [](world& w) {
    auto before = w.function(sum_of, rows("x"), outputs(sum("sum")));
    auto never = w.function(unwelcome{}, named("never"));
    auto after = w.function(sum_of, rows("x"), outputs(sum("sum")));
    const auto x = tensor::ones<float>({9});
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(before(x), 9.0F);
      EXPECT_THAT(test::text_of(errc::remote_exception, [&] { never(); }),
                  AllOf(HasSubstr("'never'"), HasSubstr("not in this rank")));
      EXPECT_EQ(after(x), 9.0F);
    }
    EXPECT_EQ(w.replaced_ranks(), 0U);
  });
}

TEST(WorldCalls, DistributingNamesAFunctionThatCannotBeMadeAlsoAfterCallsOfOthers) {
  in_worlds({2, 3}, [](world& w) {
    auto good = w.function(sum_of, rows("x"), outputs(sum("sum")));
    const auto x = tensor::ones<float>({9});
    const auto complains = [&] {
      return testing::Matches(HasSubstr("'never'"))(test::text_of(errc::remote_exception, [&] { w.distribute(); }));
    };
    {
      auto never = w.function(unwelcome{}, named("never"));
      EXPECT_EQ(good(x), 9.0F);  // the ranks have been told of both
      EXPECT_TRUE(complains());
      EXPECT_TRUE(complains());
      EXPECT_EQ(good(x), 9.0F);
      EXPECT_TRUE(complains());
      const auto victim = w.pids().back() != 0 ? w.pids().back() : w.pids().front();
      ::kill(victim, SIGKILL);
      EXPECT_TRUE(test::eventually([&] {
        try {
          EXPECT_EQ(good(x), 9.0F);
        } catch (const rank_error&) {  // it was not dead yet when the call began
        }
        return w.replaced_ranks() == 1;
      }));
      EXPECT_TRUE(complains());
    }
    w.distribute();
    w.distribute();
    EXPECT_EQ(good(x), 9.0F);
  });
}

TEST(WorldCalls, DistributingWhatTheRanksHaveAsksNoneOfThem) {
  world w({.ranks = 2, .call_timeout = std::chrono::seconds(30), .grace = std::chrono::milliseconds(20)});
  auto f = w.function(sum_of, rows("x"), outputs(sum("sum")));
  w.distribute();
  const auto rank = w.pids()[1];
  ::kill(rank, SIGSTOP);
  w.distribute();  // it would be too late
  ::kill(rank, SIGCONT);
  EXPECT_EQ(f(tensor::ones<float>({9})), 9.0F);
  EXPECT_EQ(w.replaced_ranks(), 0U);
}

TEST(WorldCalls, FunctionsAndVariablesThatAreGoneAreForgotten) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto f = w.function([](const tensor& x) { return total(x); }, rows("x"), outputs(sum("sum")));
    for (int round = 0; round < 200; ++round) {
      auto v = w.replicate("v", tensor::full<float>({16}, static_cast<float>(round)));
      auto g = w.function([](const tensor& value) { return value.at<float>(3); }, replicas(v), outputs(max("value")));
      EXPECT_EQ(g(), static_cast<float>(round));
    }
    EXPECT_EQ(f(tensor::ones<float>({5})), 5.0F);
  });
}

using summing = decltype(std::declval<world&>().function(sum_of, rows("x"), outputs(sum("sum"))));

/// A function that keeps what is of its own world, in the program; nothing of it goes to the ranks.
struct keeper {
  std::optional<variable> kept_variable{};
  std::optional<summing> kept_function{};

  template <class Archive>
  void serialize(Archive& /*archive*/) {}
  float operator()(const tensor& x) const { return total(x); }
};
using keeping = decltype(std::declval<world&>().function(keeper(), rows("x"), outputs(sum("sum"))));

keeping keeping_in(world& w) {
  keeper kept{.kept_variable = w.replicate("kept", tensor::ones<float>({3})),
              .kept_function = w.function(sum_of, rows("x"), outputs(sum("sum")))};
  return w.function(std::move(kept), rows("x"), outputs(sum("sum")));
}

std::optional<keeping> dropped_in_a_call;

// It would wait for itself, or for the call.
TEST(WorldCalls, AFunctionThatHoldsWhatIsOfItsWorldCanBeDroppedAnywhere) {
  in_worlds({1, 2, 3}, [](world& w) {
    const auto x = tensor::ones<float>({6});
    for (const bool is_called : {false, true}) {
      std::optional f(keeping_in(w));
      if (is_called) {
        EXPECT_EQ((*f)(x), 6.0F);
      }
      f.reset();
      w.distribute();
    }
    auto drop = w.function([] { dropped_in_a_call.reset(); });
    dropped_in_a_call = keeping_in(w);
    EXPECT_EQ((*dropped_in_a_call)(x), 6.0F);
    drop();
    drop.local();
    EXPECT_FALSE(dropped_in_a_call.has_value());
    EXPECT_EQ(w.function(sum_of, rows("x"), outputs(sum("sum")))(x), 6.0F);
  });
}

int squared(int value) { return value * value; }

TEST(WorldCalls, SeveralWorldsAndAPoolShareATensor) {
  const auto x = tensor::ones<float>({60});
  world first({.ranks = 2});
  world second({.ranks = 3, .caller_computes = false});
  world alone({.ranks = 1});
  pool workers({.workers = 2});
  auto f = first.function(sum_of, rows("x"), outputs(sum("sum")));
  auto g = second.function(sum_of, rows("x"), outputs(sum("sum")));
  auto h = alone.function(sum_of, rows("x"), outputs(sum("sum")));
  for (int round = 1; round <= 20; ++round) {
    x.fill(static_cast<float>(round));
    const auto expected = 60.0F * static_cast<float>(round);
    auto in_pool = workers.apply_async(sum_of, x);
    EXPECT_EQ(f(x), expected);
    EXPECT_EQ(g(x), expected);
    EXPECT_EQ(h(x), expected);
    EXPECT_EQ(in_pool.get(), expected);
    EXPECT_EQ(workers.apply(squared, round), round * round);
  }
}

/// A value of a slice: in the one tensor that the function keeps, or in another one each time.
template <class T, memory Where, bool IsKept>
tensor value_of(const tensor& x) {
  static const auto kept = tensor::empty<T>({3}, Where);
  kept.fill(static_cast<T>(x.at<float>(0)));
  return IsKept ? kept : kept.clone();
}

template <class T, memory Where, bool IsKept>
auto all_joined(const tensor& x) {
  const auto value = value_of<T, Where, IsKept>(x);
  return std::tuple(value, value, value, value, value, value, value, value, std::vector{value});
}
template <class T, memory Where, bool IsKept>
auto joined_in(world& w) {
  return w.function(&all_joined<T, Where, IsKept>, rows("x"),
                    outputs(avg("avg"), sum("sum"), prod("prod"), min("min"), max("max"), mean_of_ranks("mean"),
                            gather("gather"), none("none"), none("lists")));
}

template <class T>
std::vector<std::vector<T>> numbers_in(const std::vector<tensor>& list) {
  std::vector<std::vector<T>> found;
  for (const auto& each : list) found.push_back(each.to_vector<T>());
  return found;
}

template <class T, memory Where>
void expect_joined_as_if_others(world& w) {
  using mean = std::conditional_t<std::is_same_v<T, float>, float, double>;
  const auto kept = joined_in<T, Where, true>(w);
  const auto others = joined_in<T, Where, false>(w);
  const auto x = tensor::arange<float>(1, 14);
  for (const unsigned slices : {1U, 2U, 3U, 7U}) {
    SCOPED_TRACE(testing::Message() << slices << " slices");
    const auto found = kept.with({.num_slices = slices})(x);
    const auto expected = others.with({.num_slices = slices})(x);
    EXPECT_EQ(std::get<0>(found).template to_vector<mean>(), std::get<0>(expected).template to_vector<mean>());
    EXPECT_EQ(std::get<1>(found).template to_vector<T>(), std::get<1>(expected).template to_vector<T>());
    EXPECT_EQ(std::get<2>(found).template to_vector<T>(), std::get<2>(expected).template to_vector<T>());
    EXPECT_EQ(std::get<3>(found).template to_vector<T>(), std::get<3>(expected).template to_vector<T>());
    EXPECT_EQ(std::get<4>(found).template to_vector<T>(), std::get<4>(expected).template to_vector<T>());
    EXPECT_EQ(std::get<5>(found).template to_vector<mean>(), std::get<5>(expected).template to_vector<mean>());
    EXPECT_EQ(std::get<6>(found).template to_vector<T>(), std::get<6>(expected).template to_vector<T>());
    EXPECT_EQ(numbers_in<T>(std::get<7>(found)), numbers_in<T>(std::get<7>(expected)));
    ASSERT_EQ(std::get<8>(found).size(), std::get<8>(expected).size());
    for (std::size_t each = 0; each < std::get<8>(found).size(); ++each) {
      EXPECT_EQ(numbers_in<T>(std::get<8>(found)[each]), numbers_in<T>(std::get<8>(expected)[each]));
    }
  }
}

/// Shared memory that is kept here would be there until the program ends.
template <class Test>
void in_worlds_of_workers(const Test& test) {
  for (const unsigned ranks : {1U, 2U, 3U}) {
    world w(test::options_for(ranks, test::caller::none));
    test(w);
  }
}

TEST(WorldCalls, AFunctionMayReturnTheSameTensorForEachSlice) {
  in_worlds({1, 2, 3}, [](world& w) {
    expect_joined_as_if_others<float, memory::local>(w);
    expect_joined_as_if_others<std::int64_t, memory::local>(w);
  });
  in_worlds_of_workers([](world& w) {
    expect_joined_as_if_others<float, memory::shared>(w);
    expect_joined_as_if_others<std::int64_t, memory::shared>(w);
  });
}

template <memory Where, bool IsKept>
std::tuple<tensor, tensor, tensor> all_updated(const tensor& x) {
  const auto value = value_of<float, Where, IsKept>(x);
  return {value, value, value};
}

/// What the variables are after some calls, in each rank.
template <memory Where, bool IsKept>
std::vector<std::vector<float>> updated_in(world& w) {
  const auto zeros = tensor::zeros<float>({3});
  const auto set = w.replicate("set", zeros);
  const auto added = w.replicate("added", zeros);
  const auto reduced = w.replicate("reduced", zeros);
  auto f = w.function(&all_updated<Where, IsKept>, rows("x"),
                      updates(assign(set), increment(added), reduced_into(reduced, avg, sgd{.rate = 0.5})));
  std::vector<std::vector<float>> found;
  for (const unsigned slices : {1U, 2U, 3U, 7U}) {
    f.with({.num_slices = slices})(tensor::arange<float>(1, 14));
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      for (const auto& each : {set, added, reduced})
        found.push_back(w.get_value(rank, each).template to_vector<float>());
    }
  }
  return found;
}

TEST(WorldCalls, AnUpdateMayReturnTheSameTensorForEachSlice) {
  const auto expect_alike = []<memory Where>(world& w) {
    EXPECT_EQ((updated_in<Where, true>(w)), (updated_in<Where, false>(w)));
  };
  in_worlds({1, 2, 3}, [&](world& w) { expect_alike.template operator()<memory::local>(w); });
  in_worlds_of_workers([&](world& w) { expect_alike.template operator()<memory::shared>(w); });
}

std::tuple<double, double> twice_with_sign(const rank_context& context, const tensor& /*x*/, double value,
                                           bool by_turns) {
  const auto given = by_turns && context.slice % 2 == 1 ? -value : value;
  return {given, given};
}
constexpr auto largest = std::numeric_limits<double>::max();

TEST(WorldCalls, TheMeanOfOneNumberIsThatNumber) {
  world w({.ranks = 1});
  auto f =
      w.function(twice_with_sign, rows("x"), whole("value", "by turns"), outputs(avg("avg"), mean_of_ranks("mean")));
  for (const double value : {0.1, 1e308, -largest}) {
    for (std::size_t rows = 1; rows <= 60; ++rows) {
      EXPECT_EQ(f(tensor::ones<float>({rows}), value, false), std::tuple(value, value)) << rows;
    }
  }
}

TEST(WorldCalls, TheMeanOfLargeNumbersIsANumber) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto f =
        w.function(twice_with_sign, rows("x"), whole("value", "by turns"), outputs(avg("avg"), mean_of_ranks("mean")));
    const auto x = tensor::ones<float>({20});
    for (const unsigned slices : {1U, 2U, 4U}) {
      EXPECT_EQ(f.with({.num_slices = slices})(x, largest, false), std::tuple(largest, largest));
      const auto [all, of_ranks] = f.with({.num_slices = slices})(x, largest, true);
      EXPECT_LE(std::abs(all), largest);
      EXPECT_LE(std::abs(of_ranks), largest);
    }
    constexpr auto infinite = std::numeric_limits<double>::infinity();
    EXPECT_EQ(f.with({.num_slices = 2})(x, infinite, false), std::tuple(infinite, infinite));
  });
}

TEST(WorldCalls, AClosedWorldRefusesAndAnotherCanBeOpened) {
  for (int round = 0; round < 3; ++round) {
    world w({.ranks = 2, .name = "short"});
    auto v = w.replicate("v", tensor::ones<float>({3}));
    auto f = w.function(sum_of, rows("x"), outputs(sum("sum")));
    const auto x = tensor::ones<float>({8});
    EXPECT_EQ(f(x), 8.0F);
    w.close();
    w.close();
    EXPECT_THAT(test::text_of(errc::pool_closed, [&] { f(x); }), HasSubstr("'short'"));
    EXPECT_THAT(test::text_of(errc::pool_closed, [&] { f.async(x).get(); }), HasSubstr("'short'"));
    EXPECT_THAT(test::text_of(errc::pool_closed, [&] { static_cast<void>(w.get_value(0, v)); }), HasSubstr("'short'"));
    EXPECT_THAT(test::text_of(errc::pool_closed, [&] { w.distribute(); }), HasSubstr("'short'"));
  }
}

TEST(WorldCalls, FunctionsAndVariablesMayOutliveTheirWorld) {
  auto w = std::make_unique<world>(world_options{.ranks = 2});
  auto v = w->replicate("v", tensor::ones<float>({3}));
  auto f = w->function(sum_of, rows("x"), outputs(sum("sum")));
  w.reset();
  EXPECT_EQ(v.name(), "v");
  EXPECT_EQ(test::text_of(errc::pool_closed, [&] { f(tensor::ones<float>({2})); }).empty(), false);
}

TEST(WorldCalls, AWorldWhoseLastOwnerIsACallbackOfItsAsynchronousCallEnds) {
  for (int round = 0; round < 20; ++round) {
    std::promise<void> ended;
    std::shared_ptr<world> w(new world({.ranks = 2}), [&](world* last) {
      delete last;
      ended.set_value();
    });
    {
      auto f = w->function(sum_of, rows("x"), outputs(sum("sum")));
      f.async(tensor::ones<float>({4})).on_complete([w](float) {}, [w](const error_info&) {});
    }
    w.reset();
    ended.get_future().wait();
  }
}

TEST(WorldCalls, AWorldWhoseLastOwnerIsAnInputOfItsAsynchronousCallEnds) {
  for (int round = 0; round < 20; ++round) {
    std::promise<void> ended;
    std::shared_ptr<world> w(new world({.ranks = 2}), [&](world* last) {
      delete last;
      ended.set_value();
    });
    {
      struct mapped_file {
        std::shared_ptr<world> reader;
        std::array<float, 4> numbers{1, 2, 3, 4};
      };
      auto file = std::make_shared<mapped_file>(mapped_file{.reader = w});
      const auto bytes = std::as_writable_bytes(std::span(file->numbers));
      auto f = w->function(sum_of, rows("x"), outputs(sum("sum")));
      static_cast<void>(f.async(tensor::over(storage::over(bytes, std::move(file)), dtype::f32, {4})));
    }
    w.reset();
    ended.get_future().wait();
  }
}

TEST(WorldCalls, SeveralThreadsMayCall) {
  in_worlds({2, 3}, [](world& w) {
    auto count = w.replicate("count", tensor::zeros<std::int64_t>({}));
    auto f = w.function([](const tensor& x) { return std::tuple(total(x), std::int64_t{1}); }, rows("x"),
                        outputs(sum("sum")), updates(increment(count, max)));
    std::vector<std::thread> callers;
    for (int thread = 0; thread < 4; ++thread) {
      callers.emplace_back([&, thread] {
        const auto x = tensor::full<float>({12}, static_cast<float>(thread));
        for (int call = 0; call < 50; ++call) EXPECT_EQ(f(x), 12.0F * static_cast<float>(thread));
        auto own = w.function(sum_of, rows("x"), outputs(sum("sum")));
        EXPECT_EQ(own(x), 12.0F * static_cast<float>(thread));
      });
    }
    for (auto& each : callers) each.join();
    EXPECT_THAT(w.gather(count).to_vector<std::int64_t>(), Each(200));
  });
}

float appended(const tensor& x, float digit) {
  if (digit < 0) throw std::domain_error("negative");
  return total(x) + digit;
}

TEST(WorldCalls, CallsInTheBackgroundAreMadeInOrder) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto last = w.replicate("last", tensor::zeros<float>({}));
    auto f = w.function([](float next, const tensor& value) { return value.item<float>() * 2 + next; }, whole("next"),
                        replicas(last), updates(assign(last)));
    std::vector<future<void>> all;
    for (int call = 0; call < 10; ++call) all.push_back(f.async(static_cast<float>(call % 2)));
    for (auto& each : all) each.get();
    EXPECT_THAT(w.gather(last).to_vector<float>(), Each(341));  // 0101010101 in binary
  });
}

TEST(WorldCalls, ErrorsOfCallsInTheBackgroundComeWithTheirFutures) {
  in_worlds({2, 3}, [](world& w) {
    auto f = w.function(appended, rows("x"), whole("digit"), outputs(max("max")), named("behind"));
    const auto x = tensor::ones<float>({static_cast<std::size_t>(2 * w.ranks())});
    auto good = f.async(x, 1.0F);
    auto bad = f.async(x, -1.0F);
    auto misfit = f.with({.batch = 100}).async(x, 1.0F);
    auto again = f.async(x, 2.0F);
    EXPECT_EQ(good.get(), 3.0F);
    EXPECT_THAT(test::text_of(errc::remote_exception, [&] { bad.get(); }),
                AllOf(HasSubstr("'behind'"), HasSubstr("negative"), HasSubstr("rank ")));
    EXPECT_THAT(refusal([&] { misfit.get(); }), HasSubstr("first 100 rows"));
    EXPECT_EQ(again.get(), 4.0F);
  });
}

TEST(WorldCalls, CallsInTheBackgroundEndBeforeTheWorldCloses) {
  std::vector<future<float>> waiting;
  {
    world w({.ranks = 2});
    auto f = w.function(appended, rows("x"), whole("digit"), outputs(max("max")));
    const auto x = tensor::ones<float>({4});
    for (int call = 0; call < 20; ++call) waiting.push_back(f.async(x, static_cast<float>(call)));
  }
  for (std::size_t call = 0; call < waiting.size(); ++call)
    EXPECT_EQ(waiting[call].get(), 2 + static_cast<float>(call));
}

TEST(WorldCalls, ACallInTheBackgroundHoldsTheValueThatADataHad) {
  world w({.ranks = 2});
  auto f = w.function(sum_of, rows("x"), outputs(sum("sum")));
  data x({.value = tensor::ones<float>({100})});
  auto first = f.async(x);
  x.set_value(tensor::full<float>({200}, 2.0F));  // more than fits: other memory
  auto second = f.async(x);
  EXPECT_EQ(first.get(), 100.0F);
  EXPECT_EQ(second.get(), 400.0F);
}

TEST(WorldCalls, ACallInTheBackgroundHoldsTheTextThatAnArrayHad) {
  in_worlds({1, 2, 3}, [](world& w) {
    const test::visits seen;
    auto before = w.function([](const tensor& awaited) { test::visits::await(awaited); }, whole("awaited"));
    auto f = w.function([](const tensor& /*x*/, const std::string& key) { return key; }, rows("x"), whole("key"),
                        outputs(none("key")));
    auto under_way = before.async(seen.shared());
    char key[] = "epoch 1";
    const char* const text = key;
    auto by_array = f.async(tensor::ones<float>({3}), key);
    auto by_pointer = f.async(tensor::ones<float>({3}), text);
    std::fill_n(key, sizeof key - 1, '?');
    test::visits::add(seen.shared());
    under_way.get();
    EXPECT_THAT(by_array.get(), Each("epoch 1"));
    EXPECT_THAT(by_pointer.get(), Each("epoch 1"));
  });
}

TEST(WorldCalls, ACallbackThatAsksForMoreDoesNotHinderTheClose) {
  const auto answers = std::make_shared<std::atomic<int>>(0);
  {
    world w({.ranks = 2});
    auto f = w.function(sum_of, rows("x"), outputs(sum("sum")));
    const auto x = tensor::ones<float>({4});
    for (int call = 0; call < 10; ++call) {
      f.async(x).on_complete(
          [=](float /*sum*/) {
            try {
              f.async(x).on_complete([=](float /*sum*/) { ++*answers; },
                                     [=](const error_info& /*why*/) { ++*answers; });
            } catch (const error& failure) {
              EXPECT_EQ(failure.code(), errc::pool_closed);
              ++*answers;
            }
          },
          [](const error_info& why) { ADD_FAILURE() << why.describe(); });
    }
  }
  EXPECT_TRUE(test::eventually([&] { return *answers == 10; }));  // the last callbacks may still be at it
}

}  // namespace
}  // namespace muster::world_calls_test
