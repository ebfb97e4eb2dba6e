// SPDX-License-Identifier: BSL-1.0
// Worlds whose ranks' floating-point state the program has set: what the library computes has the same bits, the
// function runs in the state of its process, and the state stays.
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <muster/device/detail/convert.hpp>
#include <muster/parallel/detail/apply_rule.hpp>

#include "float_states.hpp"
#include "world_support.hpp"

namespace muster::world_floats_test {
namespace {

using test::floats;
using test::floats_scope;

constexpr unsigned ranks = 3;
constexpr std::size_t rows_of_x = 30;

// The state of a rank's process, which stays there between calls. The caller's is the test's business.
int set_in_rank(const rank_context& context, std::int64_t which, std::int64_t caller) {
  if (static_cast<std::int64_t>(context.rank) == caller) return 0;
  std::fesetenv(FE_DFL_ENV);
  test::set_floats(static_cast<floats>(which));
  return 0;
}

// Without arithmetic of its own: what is joined are elements of its input.
using values =
    std::tuple<float, double, float, long double, std::int32_t, double, tensor, tensor, tensor, tensor, tensor>;
values values_of(const tensor& x) {
  const auto given = x.span<double>();
  const auto first = given[0];
  const auto wide = tensor::from(given.first(3), {3}, memory::local);
  const auto narrow = convert(wide, dtype::f32, memory::local);
  return {convert(wide, dtype::f32).at<float>(0),
          first,
          narrow.at<float>(1),
          first,
          7,
          given[1],
          wide,
          narrow,
          convert(wide, dtype::f16, memory::local),
          narrow,
          narrow};
}

tensor input() {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  constexpr std::array given = {1.0 / 3, 3e-39,     0.1,  4e-39,    3e-310, 1e-30,
                                65000.0, -infinite, 1e-9, infinite, 3e38,   0.7};
  const auto made = tensor::empty<double>({rows_of_x});
  for (std::size_t row = 0; row < rows_of_x; ++row) made.at<double>(row) = given[row * 5 % given.size()];
  return made;
}

void add_bits(std::vector<std::uint8_t>& to, const tensor& what) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(what.data());
  to.insert(to.end(), first, first + what.nbytes());
}
template <class Number>
  requires std::is_arithmetic_v<Number>
void add_bits(std::vector<std::uint8_t>& to, const Number& what) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(&what);
  to.insert(to.end(), first, first + (std::is_same_v<Number, long double> ? 10 : sizeof what));  // the rest is padding
}

class WorldFloats : public testing::TestWithParam<std::tuple<floats, test::caller>> {
protected:
  static floats state() { return std::get<0>(GetParam()); }
  static test::caller who() { return std::get<1>(GetParam()); }
  [[nodiscard]] std::int64_t rank_of_caller() const {
    return who() == test::caller::none ? -1 : static_cast<std::int64_t>(world_.master_rank());
  }
  void set_in_ranks(floats which) {
    const auto set = world_.function(set_in_rank, whole("which", "caller"), outputs(none()));
    static_cast<void>(set(static_cast<std::int64_t>(which), rank_of_caller()));
  }

  world world_{test::options_for(ranks, who())};
};

TEST_P(WorldFloats, OutputsHaveTheSameBitsAndTheStateStays) {
  const auto f = world_.function(
      values_of, rows("x"),
      outputs(sum(), sum(), avg(), sum(), avg(), mean_of_ranks(), sum(), avg(), sum(), mean_of_ranks(), prod()));
  const auto x = input();
  const auto bits_of = [](const auto& results) {
    std::vector<std::uint8_t> bits;
    std::apply([&bits](const auto&... each) { (add_bits(bits, each), ...); }, results);
    return bits;
  };
  const auto call = [&](unsigned slices, int how) {
    if (how == 1) return f.with({.num_slices = slices}).async(x).get();
    return how == 2 ? f.with({.num_slices = slices}).local(x) : f.with({.num_slices = slices})(x);
  };
  for (const unsigned slices : {1U, 2U}) {
    for (const int how : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << slices << " slices, called in way " << how);
      set_in_ranks(floats::usual);
      const auto usual = bits_of(call(slices, how));
      set_in_ranks(state());
      std::optional<decltype(call(slices, how))> found;
      {
        const floats_scope set(state());
        found = call(slices, how);
        EXPECT_TRUE(set.computes_as_before());
      }
      EXPECT_TRUE(bits_of(*found) == usual);
    }
  }
}

tensor gradient_of(const tensor& x) { return tensor::from(x.span<double>().first(4), {4}); }
tensor same(const tensor& x) { return x; }

TEST_P(WorldFloats, UpdatesAndRulesHaveTheSameBits) {
  const std::vector<update_rule> rules = {assign_rule{},
                                          sgd{.rate = 0.3, .momentum = 0.9, .weight_decay = 0.1},
                                          adam{.rate = 0.1, .weight_decay = 0.1},
                                          adagrad{},
                                          rmsprop{.momentum = 0.5},
                                          adadelta{},
                                          adamax{}};
  for (const auto& rule : rules) {
    for (const auto op : {output_op::sum, output_op::avg}) {
      const auto run = [&](bool sets) {
        set_in_ranks(sets ? state() : floats::usual);
        const auto which = world_.replicate("w", tensor::full<double>({4}, 1e-3));
        const auto step = world_.function(gradient_of, rows("x"), updates(reduced_into(which, op, rule)));
        const floats_scope set(sets ? state() : floats::usual);
        for (int each = 0; each < 3; ++each) step(input().slice(0, 24));
        EXPECT_TRUE(set.computes_as_before());
        std::vector<std::uint8_t> bits;
        for (std::size_t rank = 0; rank < ranks; ++rank) add_bits(bits, world_.get_value(rank, which));
        return bits;
      };
      const auto usual = run(false);
      EXPECT_TRUE(run(true) == usual) << rule.name() << ' ' << output_op_name(op);
    }
  }
}

TEST_P(WorldFloats, IncrementsAndReductionsOfVariablesHaveTheSameBits) {
  const auto run = [&](bool sets) {
    set_in_ranks(sets ? state() : floats::usual);
    const auto which = world_.replicate("w", tensor::full<float>({2}, 3e-39F));
    const auto add = world_.function(same, whole("by"), updates(increment(which)));
    const floats_scope set(sets ? state() : floats::usual);
    add(tensor::from<float>({4e-39F, 1.0F / 3}, {2}));
    std::vector<std::uint8_t> bits;
    for (const auto op : {output_op::avg, output_op::sum, output_op::prod}) add_bits(bits, world_.reduce(which, op));
    world_.all_reduce(which);
    for (std::size_t rank = 0; rank < ranks; ++rank) add_bits(bits, world_.get_value(rank, which));
    EXPECT_TRUE(set.computes_as_before());
    return bits;
  };
  const auto usual = run(false);
  EXPECT_TRUE(run(true) == usual);
}

std::vector<std::int64_t> signs() {
  std::vector<std::int64_t> made;
  for (const auto each : test::signs_of_state()) made.push_back(static_cast<std::int64_t>(each));
  return made;
}

TEST_P(WorldFloats, TheFunctionRunsInTheStateOfItsProcess) {
  const auto f = world_.function(signs, outputs(none()));
  set_in_ranks(state());
  std::vector<std::vector<std::int64_t>> wanted;
  std::vector<std::vector<std::int64_t>> found;
  {
    const floats_scope set(state());
    wanted.assign(ranks, signs());
    found = f();
    EXPECT_EQ(f.async().get(), found);
  }
  EXPECT_EQ(found, wanted);
}

INSTANTIATE_TEST_SUITE_P(States, WorldFloats,
                         testing::Combine(testing::ValuesIn(test::floats_here()),
                                          testing::Values(test::caller::first, test::caller::none)),
                         [](const auto& which) {
                           return test::name_of(std::get<0>(which.param)) +
                                  (std::get<1>(which.param) == test::caller::none ? "InRanksAlone" : "InAll");
                         });

// ---- rules without a world

TEST(RuleFloats, ARuleGivesTheSameBitsAndLeavesTheState) {
  const std::vector<update_rule> rules = {
      sgd{.rate = 0.3, .momentum = 0.9}, adam{.rate = 0.1}, adagrad{}, rmsprop{}, adadelta{}, adamax{}};
  const auto run = [](const update_rule& rule, dtype type) {
    constexpr std::array values = {1.0F / 3, 3e-39F, 1.0F, 1e-30F};
    constexpr std::array gradients = {0.1F, 4e-39F, -1e-8F, 3e-39F};
    const auto value = convert(tensor::from(values), type);
    const auto gradient = convert(tensor::from(gradients), type);
    const auto states = make_states(rule, value);
    for (std::uint64_t step = 1; step <= 3; ++step) apply(rule, value, gradient, states, step);
    std::vector<std::uint8_t> bits;
    add_bits(bits, value);
    for (const auto& each : states) add_bits(bits, each);
    return bits;
  };
  for (const auto& rule : rules) {
    for (const auto type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
      const auto usual = run(rule, type);
      for (const auto state : test::floats_here()) {
        const floats_scope set(state);
        EXPECT_TRUE(run(rule, type) == usual) << rule.name() << ' ' << type << ' ' << state;
        EXPECT_TRUE(set.is_unchanged()) << rule.name() << ' ' << type << ' ' << state;
      }
    }
  }
}

}  // namespace
}  // namespace muster::world_floats_test
