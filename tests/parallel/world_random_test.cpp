// SPDX-License-Identifier: BSL-1.0
// Random functions and calls, compared with what one process makes of the same rows one after the other.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <random>

#include "rule_reference.hpp"
#include "seed.hpp"
#include "soak_time.hpp"
#include "world_support.hpp"

namespace muster::world_random_test {
namespace {

template <class T>
constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

/// Numbers are joined in these: integers wrap around.
template <class T>
using wide = std::conditional_t<std::is_integral_v<T>,
                                std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, double>;
/// What every row has: one number in each of its places, however many dimensions it has.
template <class T>
using columns = std::vector<wide<T>>;

template <class T>
T narrow(wide<T> value) {
  if constexpr (is_half<T>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else {
    return static_cast<T>(value);
  }
}

/// How far sums may be from exact ones, as a part of what was summed up: each rank's are rounded, and those of its
/// slices.
template <class T>
constexpr double tolerance = is_half<T> ? (std::is_same_v<T, f16> ? 0.01 : 0.08) : 2e-6;

/// The sums of the columns of both inputs.
template <class T>
columns<T> sums_of(const tensor& x, const tensor& y) {
  const auto width = x.size() / x.rows();
  columns<T> sums(width);
  for (const tensor* const each : {&x, &y}) {
    const auto whole = each->contiguous();
    const auto values = whole.span<T>();
    for (std::size_t index = 0; index < values.size(); ++index) {
      sums[index % width] += static_cast<wide<T>>(values[index]);
    }
  }
  for (auto& each : sums) each = static_cast<wide<T>>(narrow<T>(each));
  return sums;
}
template <class T>
tensor as_tensor(const columns<T>& values, const tensor_shape& shape) {
  auto made = tensor::empty<T>(shape);
  std::ranges::transform(values, made.template span<T>().begin(), narrow<T>);
  return made;
}

template <class T>
std::tuple<tensor, tensor, tensor, tensor, tensor, int, int, tensor, tensor, tensor> everything(const tensor& x,
                                                                                                const tensor& y) {
  const auto sums = as_tensor<T>(sums_of<T>(x, y), x.shape().without_first());
  const auto rows = static_cast<int>(x.rows());
  return {sums, sums, sums, sums, x, rows, rows, sums, sums, sums};
}

/// What one slice of one rank gives.
template <class T>
struct piece {
  std::size_t rank = 0;
  std::size_t rows = 0;
  columns<T> sums{};
};

template <class T>
wide<T> joined(output_op op, wide<T> a, wide<T> b) {
  if (op == output_op::min) return std::min(a, b);
  if (op == output_op::max) return std::max(a, b);
  if constexpr (std::is_integral_v<T>) {
    const auto left = static_cast<std::uint64_t>(a);
    const auto right = static_cast<std::uint64_t>(b);
    return static_cast<wide<T>>(op == output_op::prod ? left * right : left + right);
  } else {
    return op == output_op::prod ? a * b : a + b;
  }
}
template <class T>
columns<T> join(output_op op, const std::vector<piece<T>>& pieces) {
  auto made = pieces.front().sums;
  for (std::size_t index = 1; index < pieces.size(); ++index) {
    for (std::size_t column = 0; column < made.size(); ++column) {
      made[column] = joined<T>(op, made[column], pieces[index].sums[column]);
    }
  }
  return made;
}
template <class T>
std::vector<double> average(const std::vector<piece<T>>& pieces) {
  std::vector<double> made(pieces.front().sums.size());
  double rows = 0;
  for (const auto& each : pieces) {
    for (std::size_t column = 0; column < made.size(); ++column) {
      made[column] += static_cast<double>(each.rows) * static_cast<double>(each.sums[column]);
    }
    rows += static_cast<double>(each.rows);
  }
  for (auto& each : made) each /= rows;
  return made;
}
template <class T>
columns<T> join_or_average(output_op op, const std::vector<piece<T>>& pieces) {
  if constexpr (!std::is_integral_v<T>) {
    if (op == output_op::avg) return average<T>(pieces);
  }
  return join<T>(op, pieces);
}

using random_source = std::mt19937;

std::size_t draw(random_source& random, std::size_t first, std::size_t last) {
  return std::uniform_int_distribution<std::size_t>(first, last)(random);
}

// Bools have no average.
template <class T>
auto first_output() {
  if constexpr (std::is_same_v<T, bool>) {
    return max("first");
  } else {
    return avg("first");
  }
}

template <class T>
auto make_function(world& w, const std::array<variable, 3>& changed, const std::array<output_op, 3>& ops,
                   const update_rule& rule) {
  return w.function(
      everything<T>, rows("x", "y"),
      outputs(first_output<T>(), sum("sum"), min("min"), max("max"), gather("rows"), sum("count"), none("counts")),
      updates(assign(changed[0], ops[0]), increment(changed[1], ops[1]), reduced_into(changed[2], ops[2], rule)));
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
  output_op draw_op(bool for_assigning = true) {
    constexpr std::array ops = {output_op::avg, output_op::sum, output_op::min, output_op::max, output_op::prod};
    const std::size_t last = std::is_same_v<T, f16> ? 3 : 4;
    return ops[draw(random_, has_fractions ? 0 : 1, for_assigning ? last : 1)];
  }

  tensor draw_rows(std::size_t rows) {
    auto made = tensor::empty<T>(shape_of(rows));
    for (auto& each : made.template span<T>()) {
      if constexpr (has_fractions) {
        each = narrow<T>(0.5 + static_cast<double>(draw(random_, 0, 1000)) / 1000);
      } else {
        each = static_cast<T>(draw(random_, 0, std::is_same_v<T, bool> ? 1 : 9));
      }
    }
    return made;
  }

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

  std::vector<piece<T>> pieces_of(const tensor& x, const tensor& y, unsigned slices) const {
    std::vector<piece<T>> made;
    for (std::size_t rank = 0; rank < w_.ranks(); ++rank) {
      const auto share = part_of({0, x.rows()}, rank, w_.ranks());
      for (unsigned slice = 0; slice < slices; ++slice) {
        const auto part = part_of(share, slice, slices);
        if (part.empty()) continue;
        made.push_back({rank, part.size(), sums_of<T>(x.slice(part.first, part.last), y.slice(part.first, part.last))});
      }
    }
    return made;
  }

  void one_call() {
    const auto length = draw(random_, 0, 24);
    const auto x = draw_rows(length);
    const auto chosen = draw_selection(length);
    const bool is_mini = !chosen.batch.is_all() && draw(random_, 0, 2) == 0;
    const data y(
        {.value = draw_rows(is_mini ? chosen.rows.size() + draw(random_, 0, 3) : length), .minibatch = is_mini});
    const auto slices = static_cast<unsigned>(draw(random_, 1, 5));
    const auto own_x = taken(x, chosen.rows);
    const auto pieces =
        pieces_of(own_x, is_mini ? y.value().slice(0, chosen.rows.size()) : taken(y.value(), chosen.rows), slices);
    SCOPED_TRACE(testing::Message() << w_.ranks() << " ranks, " << length << " rows, " << chosen.rows.size()
                                    << " selected, " << slices << " slices of " << type << ' ' << x.shape() << ", "
                                    << rule_.name());
    call({.batch = chosen.batch, .num_slices = slices}, x, y, own_x, pieces);
    update(pieces);
    expect_variables();
  }

  void call(const run_options& options, const tensor& x, const data& y, const tensor& own_x,
            const std::vector<piece<T>>& pieces) {
    if (pieces.empty()) {
      static_cast<void>(test::refusal([&] { static_cast<void>(f_.with(options)(x, y)); }));
      EXPECT_EQ((f_.template only<5, 6>().with(options)(x, y)), std::tuple(0, std::vector<int>{}));
      return;
    }
    const auto rows = own_x.template to_vector<T>();
    switch (draw(random_, 0, 2)) {
      case 0: {
        const auto [first, sums, least, most, gathered, count, counts] = f_.with(options)(x, y);
        expect_first(first, pieces);
        expect_near(sums, join<T>(output_op::sum, pieces));
        expect_near(least, join<T>(output_op::min, pieces), {}, 0);
        expect_near(most, join<T>(output_op::max, pieces), {}, 0);
        EXPECT_EQ(gathered.template to_vector<T>(), rows);
        EXPECT_EQ(count, static_cast<int>(own_x.rows()));
        expect_counts(counts, pieces);
        break;
      }
      case 1: {
        const auto [gathered, sums, again] = f_.template only<4, 1, 1>().with(options)(x, y);
        EXPECT_EQ(gathered.template to_vector<T>(), rows);
        expect_near(sums, join<T>(output_op::sum, pieces));
        EXPECT_EQ(again.template to_vector<T>(), sums.template to_vector<T>());
        break;
      }
      default: {
        const auto [counts, first] = f_.template only<6, 0>().with(options)(x, y);
        expect_counts(counts, pieces);
        expect_first(first, pieces);
      }
    }
  }

  static void expect_counts(const std::vector<int>& found, const std::vector<piece<T>>& pieces) {
    std::vector<int> expected;
    for (const auto& each : pieces) expected.push_back(static_cast<int>(each.rows));
    EXPECT_EQ(found, expected);
  }
  static void expect_first(const tensor& found, const std::vector<piece<T>>& pieces) {
    if constexpr (std::is_same_v<T, bool>) {
      expect_near(found, join<T>(output_op::max, pieces));
    } else if constexpr (has_fractions) {
      expect_near(found, average<T>(pieces));
    } else {
      const auto expected = average<T>(pieces);
      const auto values = found.template span<double>();
      for (std::size_t column = 0; column < expected.size(); ++column) {
        EXPECT_NEAR(values[column], expected[column], 2e-6 * std::max(1.0, std::abs(expected[column])));
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
      assigned_[rank] = join_or_average<T>(ops_[0], own);
      const auto more = join_or_average<T>(ops_[1], own);
      for (std::size_t column = 0; column < width_; ++column) {
        incremented_[rank][column] = joined<T>(output_op::sum, incremented_[rank][column], more[column]);
      }
    }
    if (!pieces.empty()) reduce(join_or_average<T>(ops_[2], pieces));
  }
  void reduce(const columns<T>& gradient) {
    gradient_ = gradient;
    before_ = reduced_;
    ++steps_;
    for (std::size_t column = 0; column < width_; ++column) {
      if constexpr (has_fractions) {
        auto& one = remembered_[column];
        one.value = reduced_[column];
        one.update(rule_, gradient[column], steps_);
        reduced_[column] = one.value;
      } else {
        reduced_[column] = gradient[column];
      }
    }
  }

  // From here on it goes on from what was found, so that what was rounded does not add up.
  void expect_variables() {
    const auto first = w_.get_value(0, variables_[2]).template to_vector<T>();
    for (std::size_t rank = 0; rank < w_.ranks(); ++rank) {
      expect_near_and_take(w_.get_value(rank, variables_[0]), assigned_[rank]);
      expect_near_and_take(w_.get_value(rank, variables_[1]), incremented_[rank]);
      EXPECT_EQ(w_.get_value(rank, variables_[2]).template to_vector<T>(), first);
    }
    expect_near(w_.get_value(0, variables_[2]), reduced_, {&before_, &gradient_});
    take(w_.get_value(0, variables_[2]), reduced_);
  }
  static void expect_near_and_take(const tensor& found, columns<T>& expected) {
    expect_near(found, expected);
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
  const std::array<variable, 3> variables_ = {make_variable("assigned"), make_variable("incremented"),
                                              make_variable("reduced")};
  const update_rule rule_ = draw_rule();
  const std::array<output_op, 3> ops_ = {draw_op(), draw_op(), draw_op(rule_ == update_rule())};
  decltype(make_function<T>(w_, variables_, ops_, rule_)) f_ = make_function<T>(w_, variables_, ops_, rule_);
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
  random_source random(has_time ? test::seed() : 20'170'901);
  test::in_worlds({1, 2, 2, 3, 4, 4, 8}, [&](world& w) {
    for (int each = 0; each < trials && !this->HasFailure(); ++each) trial<TypeParam>(w, random).run(calls);
  });
}

}  // namespace
}  // namespace muster::world_random_test
