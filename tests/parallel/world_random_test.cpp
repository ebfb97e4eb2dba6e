// SPDX-License-Identifier: BSL-1.0
// Random functions of several forms, and calls, compared with what one process makes of the same rows one after the
// other.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "random_functions.hpp"
#include "rule_reference.hpp"
#include "seed.hpp"
#include "soak_time.hpp"
#include "world_support.hpp"

namespace muster::world_random_test {
namespace {

using random_source = std::mt19937;

std::size_t draw(random_source& random, std::size_t first, std::size_t last) {
  return std::uniform_int_distribution<std::size_t>(first, last)(random);
}

std::vector<update_rule> optimizers() {
  return {sgd{.rate = 0.1},
          sgd{.rate = 0.25, .momentum = 0.5},
          sgd{.rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01},
          adam{.rate = 0.05},
          adam{.rate = 0.05, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1},
          adagrad{.rate = 0.1},
          rmsprop{.rate = 0.05},
          rmsprop{.rate = 0.05, .decay = 0.9, .momentum = 0.5},
          adadelta{},
          adamax{.rate = 0.05}};
}

/// One function of a world, and what its variables should be.
template <class T>
class trial {
public:
  trial(world& w, random_source& random)
      : w_(w),
        random_(random),
        assigned_(w.ranks(), columns<T>(width_)),
        incremented_(w.ranks(), columns<T>(width_)),
        reduced_(width_),
        remembered_(width_) {}

  void run(int calls) {
    for (int call = 0; call < calls && !testing::Test::HasFailure(); ++call) one_call();
  }

private:
  static constexpr bool has_fractions = !std::is_integral_v<T>;
  static constexpr auto type = dtype_of<T>;

  struct selection {
    row_selection batch{};
    std::vector<std::size_t> rows;
  };

  [[nodiscard]] variable make_variable(const char* name) { return w_.replicate(name, tensor::zeros<T>(inner_)); }

  // Of a row; with it inputs have one to three dimensions.
  tensor_shape draw_inner() {
    tensor_shape made;
    for (auto dimensions = draw(random_, 0, 2); dimensions > 0; --dimensions) made.push_back(draw(random_, 1, 3));
    return made;
  }
  [[nodiscard]] tensor_shape shape_of(std::size_t rows) const {
    tensor_shape made{rows};
    for (const auto size : inner_) made.push_back(size);
    return made;
  }

  // What is assigned may be reduced in any way; all but averages are for integers too. Products are beyond f16.
  update_rule draw_rule() {
    const auto rules = optimizers();
    const auto which = has_fractions ? draw(random_, 0, 2 * rules.size() - 1) : rules.size();
    return which < rules.size() ? rules[which] : update_rule();
  }
  use_of_variables draw_use() {
    const auto rule = draw_rule();
    return {.changed = {make_variable("assigned"), make_variable("incremented"), make_variable("reduced")},
            .ops = {draw_op(), draw_op(), draw_op(rule == update_rule())},
            .rule = rule};
  }
  output_op draw_op(bool for_assigning = true) {
    constexpr std::array ops = {output_op::avg, output_op::sum, output_op::min, output_op::max, output_op::prod};
    const std::size_t last = std::is_same_v<T, f16> ? 3 : 4;
    return ops[draw(random_, has_fractions ? 0 : 1, for_assigning ? last : 1)];
  }

  tensor draw_values(const tensor_shape& shape) {
    auto made = tensor::empty<T>(shape);
    for (auto& each : made.template span<T>()) {
      if constexpr (has_fractions) {
        each = narrow<T>(0.5 + static_cast<double>(draw(random_, 0, 1000)) / 1000);
      } else {
        each = static_cast<T>(draw(random_, 0, std::is_same_v<T, bool> ? 1 : 9));
      }
    }
    return made;
  }
  tensor draw_rows(std::size_t rows) { return draw_values(shape_of(rows)); }

  selection draw_selection(std::size_t length) {
    selection made;
    const auto kind = length == 0 ? 0 : draw(random_, 0, 3);
    std::size_t first = 0;
    std::size_t last = length;
    if (kind == 1) {
      last = draw(random_, 1, length);
      made.batch = last;
    } else if (kind == 2) {
      first = draw(random_, 0, length - 1);
      last = draw(random_, first + 1, length);
      made.batch = row_range{first, last};
    }
    for (auto row = first; row < last; ++row) made.rows.push_back(row);
    if (kind == 3) {
      made.rows.resize(draw(random_, 1, 2 * length));
      for (auto& each : made.rows) each = draw(random_, 0, length - 1);
      made.batch = made.rows;
    }
    return made;
  }

  [[nodiscard]] tensor taken(const tensor& from, const std::vector<std::size_t>& rows) const {
    auto made = tensor::empty<T>(shape_of(rows.size()));
    for (std::size_t row = 0; row < rows.size(); ++row) made.row(row).copy_from(from.row(rows[row]));
    return made;
  }

  // What the rank's function is given besides the rows of a slice.
  [[nodiscard]] std::vector<tensor> with_others(std::vector<tensor> slices, std::size_t rank,
                                                const tensor& for_all) const {
    if (form_.has_whole) slices.push_back(for_all);
    if (form_.reads) slices.push_back(as_tensor<T>(assigned_[rank], inner_));
    return slices;
  }

  // `selected`: of each input with rows, those that the call is for. Where there is none, each rank is called once.
  [[nodiscard]] std::vector<piece<T>> pieces_of(const std::vector<tensor>& selected, const tensor& for_all,
                                                unsigned slices) const {
    std::vector<piece<T>> made;
    for (std::size_t rank = 0; rank < w_.ranks(); ++rank) {
      if (selected.empty()) made.push_back({rank, 1, sums_of<T>(form_, with_others({}, rank, for_all))});
      for (unsigned slice = 0; !selected.empty() && slice < slices; ++slice) {
        const auto part = part_of(part_of({0, selected.front().rows()}, rank, w_.ranks()), slice, slices);
        if (part.empty()) continue;
        std::vector<tensor> given;
        for (const auto& each : selected) given.push_back(each.slice(part.first, part.last));
        made.push_back({rank, part.size(), sums_of<T>(form_, with_others(std::move(given), rank, for_all))});
      }
    }
    return made;
  }

  // All inputs but the first may hold just the rows that the call is for. Returns what is selected of each.
  std::vector<tensor> draw_inputs(call_inputs& given) {
    if (form_.inputs == 0) return {};
    const auto length = draw(random_, 0, 24);
    const auto chosen = draw_selection(length);
    given.options = {.batch = chosen.batch, .num_slices = static_cast<unsigned>(draw(random_, 1, 5))};
    std::vector<tensor> selected;
    for (std::size_t index = 0; index < form_.inputs; ++index) {
      const bool is_mini = index > 0 && !chosen.batch.is_all() && draw(random_, 0, 2) == 0;
      const data one(
          {.value = draw_rows(is_mini ? chosen.rows.size() + draw(random_, 0, 3) : length), .minibatch = is_mini});
      given.rows.emplace_back(one);
      selected.push_back(is_mini ? one.value().slice(0, chosen.rows.size()) : taken(one.value(), chosen.rows));
    }
    return selected;
  }

  void one_call() {
    call_inputs given{.whole = draw_values(inner_)};
    const auto selected = draw_inputs(given);
    const auto pieces = pieces_of(selected, given.whole, given.options.num_slices);
    SCOPED_TRACE(testing::Message() << w_.ranks() << " ranks, " << form_ << ", "
                                    << (selected.empty() ? 0 : selected.front().rows()) << " rows selected, "
                                    << given.options.num_slices << " slices of " << type << ' ' << inner_ << ", "
                                    << how_.rule.name());
    call(given, pieces, selected);
    update(pieces);
    expect_variables();
  }

  void call(const call_inputs& given, const std::vector<piece<T>>& pieces, const std::vector<tensor>& selected) {
    if (pieces.empty()) {
      static_cast<void>(test::refusal([&] { static_cast<void>(f_->call(asked::all, given)); }));
      const auto found = f_->call(asked::what_nothing_has, given);
      EXPECT_EQ(found.count, 0);
      EXPECT_TRUE(found.counts->empty() && found.each->empty());
      return;
    }
    expect_outputs(f_->call(static_cast<asked>(draw(random_, 0, asked_of_some - 1)), given), pieces, selected);
  }

  static void expect_outputs(const call_outputs& found, const std::vector<piece<T>>& pieces,
                             const std::vector<tensor>& selected) {
    if (found.first) expect_average(*found.first, pieces, average<T>, output_op::max);
    if (found.mean) expect_average(*found.mean, pieces, mean_of_averages<T>, output_op::min);
    if (found.sums) expect_near(*found.sums, join<T>(output_op::sum, pieces));
    if (found.least) expect_near(*found.least, join<T>(output_op::min, pieces), {}, 0);
    if (found.most) expect_near(*found.most, join<T>(output_op::max, pieces), {}, 0);
    if (found.gathered) expect_gathered(*found.gathered, pieces, selected);
    if (found.count) {
      EXPECT_EQ(*found.count, std::accumulate(pieces.begin(), pieces.end(), 0, [](int sum, const piece<T>& each) {
        return sum + static_cast<int>(each.rows);
      }));
    }
    if (found.counts) expect_counts(*found.counts, pieces);
    if (found.product) expect_product(*found.product, pieces);
    if (found.each) expect_each(*found.each, pieces);
  }

  static void expect_gathered(const tensor& found, const std::vector<piece<T>>& pieces,
                              const std::vector<tensor>& selected) {
    std::vector<T> expected;
    if (!selected.empty()) {
      expected = selected.front().template to_vector<T>();
    } else {
      for (const auto& one : pieces) std::ranges::transform(one.sums, std::back_inserter(expected), narrow<T>);
    }
    EXPECT_EQ(found.template to_vector<T>(), expected);
  }

  // Each product is rounded; there are some dozens of them at most. In f16 one of them may be beyond all numbers.
  static void expect_product(const tensor& found, const std::vector<piece<T>>& pieces) {
    if (std::is_same_v<T, f16> && largest_product(pieces) > 60'000) return;
    expect_near(found, join<T>(output_op::prod, pieces), {}, 5 * update_tolerance<T>);
  }
  // That there may be on the way, in whatever order.
  static double largest_product(const std::vector<piece<T>>& pieces) {
    double largest = 0;
    for (std::size_t column = 0; column < pieces.front().sums.size(); ++column) {
      double product = 1;
      for (const auto& each : pieces) product *= std::max(1.0, std::abs(static_cast<double>(each.sums[column])));
      largest = std::max(largest, product);
    }
    return largest;
  }

  static void expect_each(const std::vector<tensor>& found, const std::vector<piece<T>>& pieces) {
    ASSERT_EQ(found.size(), pieces.size());
    for (std::size_t index = 0; index < pieces.size(); ++index) {
      expect_near(found[index], pieces[index].sums, {}, 0);
    }
  }

  static void expect_counts(const std::vector<int>& found, const std::vector<piece<T>>& pieces) {
    std::vector<int> expected;
    for (const auto& each : pieces) expected.push_back(static_cast<int>(each.rows));
    EXPECT_EQ(found, expected);
  }
  // Of integers they are floating-point numbers; of bools there is none, and `instead` was asked for.
  static void expect_average(const tensor& found, const std::vector<piece<T>>& pieces,
                             std::vector<double> (*expected_of)(const std::vector<piece<T>>&), output_op instead) {
    if constexpr (std::is_same_v<T, bool>) {
      expect_near(found, join<T>(instead, pieces));
    } else if constexpr (has_fractions) {
      expect_near(found, expected_of(pieces));
    } else {
      const auto expected = expected_of(pieces);
      const auto values = found.template span<double>();
      ASSERT_EQ(values.size(), expected.size());
      for (std::size_t column = 0; column < expected.size(); ++column) {
        EXPECT_NEAR(values[column], expected[column], tolerance<double> * std::max(1.0, std::abs(expected[column])));
      }
    }
  }
  // Of numbers with fractions, but for a part of what they have come of: of themselves and of `others`.
  static void expect_near(const tensor& found, const columns<T>& expected,
                          std::initializer_list<const columns<T>*> others = {}, double part = tolerance<T>) {
    const auto values = found.template span<T>();
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t column = 0; column < expected.size(); ++column) {
      if constexpr (has_fractions) {
        auto scale = std::max(1.0, std::abs(expected[column]));
        for (const auto* const each : others) scale = std::max(scale, std::abs((*each)[column]));
        EXPECT_NEAR(static_cast<double>(values[column]), expected[column], part * scale);
      } else {
        EXPECT_EQ(values[column], narrow<T>(expected[column]));
      }
    }
  }

  void update(const std::vector<piece<T>>& pieces) {
    for (std::size_t rank = 0; rank < w_.ranks(); ++rank) {
      std::vector<piece<T>> own;
      std::ranges::copy_if(pieces, std::back_inserter(own), [&](const auto& each) { return each.rank == rank; });
      if (own.empty()) continue;
      assigned_[rank] = join_or_average<T>(how_.ops[0], own);
      const auto more = join_or_average<T>(how_.ops[1], own);
      for (std::size_t column = 0; column < width_; ++column) {
        incremented_[rank][column] = joined<T>(output_op::sum, incremented_[rank][column], more[column]);
      }
    }
    if (!pieces.empty()) reduce(join_or_average<T>(how_.ops[2], pieces));
  }
  void reduce(const columns<T>& gradient) {
    gradient_ = gradient;
    before_ = reduced_;
    ++steps_;
    for (std::size_t column = 0; column < width_; ++column) {
      if constexpr (has_fractions) {
        auto& one = remembered_[column];
        one.value = reduced_[column];
        one.update(how_.rule, gradient[column], steps_);
        reduced_[column] = one.value;
      } else {
        reduced_[column] = gradient[column];
      }
    }
  }

  // From here on it goes on from what was found, so that what was rounded does not add up.
  void expect_variables() {
    const auto first = w_.get_value(0, how_.changed[2]).template to_vector<T>();
    for (std::size_t rank = 0; rank < w_.ranks(); ++rank) {
      expect_near_and_take(w_.get_value(rank, how_.changed[0]), assigned_[rank]);
      expect_near_and_take(w_.get_value(rank, how_.changed[1]), incremented_[rank]);
      EXPECT_EQ(w_.get_value(rank, how_.changed[2]).template to_vector<T>(), first);
    }
    expect_near(w_.get_value(0, how_.changed[2]), reduced_, {&before_, &gradient_}, update_tolerance<T>);
    take(w_.get_value(0, how_.changed[2]), reduced_);
  }
  static void expect_near_and_take(const tensor& found, columns<T>& expected) {
    expect_near(found, expected, {}, update_tolerance<T>);
    take(found, expected);
  }
  static void take(const tensor& found, columns<T>& expected) {
    std::ranges::transform(found.template span<T>(), expected.begin(),
                           [](T each) { return static_cast<wide<T>>(each); });
  }

  world& w_;
  random_source& random_;
  const tensor_shape inner_ = draw_inner();
  const std::size_t width_ = std::accumulate(inner_.begin(), inner_.end(), std::size_t{1}, std::multiplies<>());
  const use_of_variables how_ = draw_use();
  const std::size_t which_ = draw(random_, 0, forms.size() - 1);
  const form form_ = forms[which_];
  const std::unique_ptr<callee> f_ = make_callee<T>(which_, w_, how_);
  // By rank; then of all.
  std::vector<columns<T>> assigned_;
  std::vector<columns<T>> incremented_;
  columns<T> reduced_;
  // Of the last call with rows.
  columns<T> before_ = columns<T>(width_);
  columns<T> gradient_ = columns<T>(width_);
  std::uint64_t steps_ = 0;
  std::vector<test::reference_element> remembered_;
};

template <class T>
class WorldRandom : public testing::Test {};
using number_types = testing::Types<float, double, f16, bf16, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                                    std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, bool>;
TYPED_TEST_SUITE(WorldRandom, number_types);

// Ten thousand calls, the same in every run; twenty thousand others when there is time.
TYPED_TEST(WorldRandom, CallsGiveWhatOneProcessGives) {
  const bool has_time = test::soak_time(std::chrono::seconds(0)).count() > 0;
  const int trials = has_time ? 10 : 5;
  constexpr int calls = 25;
  random_source random(test::seed(20'170'901));
  test::in_worlds({1, 2, 2, 3, 4, 4, 8}, [&](world& w) {
    for (int each = 0; each < trials && !this->HasFailure(); ++each) trial<TypeParam>(w, random).run(calls);
  });
}

}  // namespace
}  // namespace muster::world_random_test
