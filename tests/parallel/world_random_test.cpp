// SPDX-License-Identifier: BSL-1.0
// Random functions and calls, compared with what one process makes of the same rows one after the other.
#include <chrono>
#include <cmath>
#include <memory>
#include <random>

#include "seed.hpp"
#include "soak_time.hpp"
#include "world_support.hpp"

namespace muster::world_random_test {
namespace {

constexpr std::size_t width = 2;

/// Numbers are joined in these: integers wrap around.
template <class T>
using wide = std::conditional_t<std::is_integral_v<T>,
                                std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, double>;
template <class T>
using columns = std::array<wide<T>, width>;

/// The sums of the columns of both inputs.
template <class T>
columns<T> sums_of(const tensor& x, const tensor& y) {
  columns<T> sums{};
  for (const tensor* const each : {&x, &y}) {
    for (std::size_t row = 0; row < each->rows(); ++row) {
      for (std::size_t column = 0; column < width; ++column)
        sums[column] += static_cast<wide<T>>(each->at<T>(row, column));
    }
  }
  for (auto& each : sums) each = wide<T>(static_cast<T>(each));
  return sums;
}
template <class T>
tensor as_tensor(const columns<T>& values) {
  auto made = tensor::empty<T>({width});
  for (std::size_t column = 0; column < width; ++column) made.template at<T>(column) = static_cast<T>(values[column]);
  return made;
}

template <class T>
std::tuple<tensor, tensor, tensor, tensor, tensor, int, int, tensor, tensor, tensor> everything(const tensor& x,
                                                                                                const tensor& y) {
  const auto sums = as_tensor<T>(sums_of<T>(x, y));
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
    for (std::size_t column = 0; column < width; ++column) {
      made[column] = joined<T>(op, made[column], pieces[index].sums[column]);
    }
  }
  return made;
}
template <class T>
std::array<double, width> average(const std::vector<piece<T>>& pieces) {
  std::array<double, width> made{};
  double rows = 0;
  for (const auto& each : pieces) {
    for (std::size_t column = 0; column < width; ++column) {
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

template <class T>
auto make_function(world& w, const std::array<variable, 3>& changed, const std::array<output_op, 3>& ops,
                   bool has_momentum) {
  return w.function(
      everything<T>, rows("x", "y"),
      outputs(avg("avg"), sum("sum"), min("min"), max("max"), gather("rows"), sum("count"), none("counts")),
      updates(assign(changed[0], ops[0]), increment(changed[1], ops[1]),
              has_momentum ? reduced_into(changed[2], ops[2], sgd{.rate = 0.25, .momentum = 0.5})
                           : reduced_into(changed[2], ops[2])));
}

/// One function of a world, and what its variables should be.
template <class T>
class trial {
public:
  trial(world& w, random_source& random)
      : w_(w), random_(random), assigned_(w.ranks(), columns<T>{}), incremented_(w.ranks(), columns<T>{}) {}

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

  [[nodiscard]] variable make_variable(const char* name) { return w_.replicate(name, tensor::zeros<T>({width})); }

  // For updates; the first is only for what has fractions.
  output_op draw_op() {
    constexpr std::array ops = {output_op::avg, output_op::sum, output_op::prod, output_op::min, output_op::max};
    return ops[draw(random_, has_fractions ? 0 : 1, has_momentum_ ? 1 : 4)];
  }

  tensor draw_rows(std::size_t rows) {
    auto made = tensor::empty<T>({rows, width});
    for (auto& each : made.template span<T>()) {
      each = static_cast<T>(has_fractions ? 0.5 + static_cast<double>(draw(random_, 0, 1000)) / 1000
                                          : static_cast<double>(draw(random_, 0, 9)));
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

  static tensor taken(const tensor& from, const std::vector<std::size_t>& rows) {
    auto made = tensor::empty<T>({rows.size(), width});
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
                                    << " selected, " << slices << " slices of " << type);
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
        const auto [mean, sums, least, most, gathered, count, counts] = f_.with(options)(x, y);
        expect_average(mean, pieces);
        expect_near(sums, join<T>(output_op::sum, pieces), 2e-6);
        expect_near(least, join<T>(output_op::min, pieces), 0);
        expect_near(most, join<T>(output_op::max, pieces), 0);
        EXPECT_EQ(gathered.template to_vector<T>(), rows);
        EXPECT_EQ(count, static_cast<int>(own_x.rows()));
        expect_counts(counts, pieces);
        break;
      }
      case 1: {
        const auto [gathered, sums, again] = f_.template only<4, 1, 1>().with(options)(x, y);
        EXPECT_EQ(gathered.template to_vector<T>(), rows);
        expect_near(sums, join<T>(output_op::sum, pieces), 2e-6);
        EXPECT_EQ(again.template to_vector<T>(), sums.template to_vector<T>());
        break;
      }
      default: {
        const auto [counts, mean] = f_.template only<6, 0>().with(options)(x, y);
        expect_counts(counts, pieces);
        expect_average(mean, pieces);
      }
    }
  }

  static void expect_counts(const std::vector<int>& found, const std::vector<piece<T>>& pieces) {
    std::vector<int> expected;
    for (const auto& each : pieces) expected.push_back(static_cast<int>(each.rows));
    EXPECT_EQ(found, expected);
  }
  static void expect_average(const tensor& found, const std::vector<piece<T>>& pieces) {
    using mean_type = std::conditional_t<has_fractions, T, double>;
    const auto expected = average<T>(pieces);
    for (std::size_t column = 0; column < width; ++column) {
      EXPECT_NEAR(static_cast<double>(found.at<mean_type>(column)), expected[column],
                  2e-6 * std::max(1.0, std::abs(expected[column])));
    }
  }
  static void expect_near(const tensor& found, const columns<T>& expected, double tolerance) {
    for (std::size_t column = 0; column < width; ++column) {
      if constexpr (has_fractions) {
        EXPECT_NEAR(static_cast<double>(found.at<T>(column)), expected[column],
                    tolerance * std::max(1.0, std::abs(expected[column])));
      } else {
        EXPECT_EQ(found.at<T>(column), static_cast<T>(expected[column]));
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
      for (std::size_t column = 0; column < width; ++column) {
        incremented_[rank][column] = joined<T>(output_op::sum, incremented_[rank][column], more[column]);
      }
    }
    if (!pieces.empty()) reduce(join_or_average<T>(ops_[2], pieces));
  }
  void reduce(const columns<T>& gradient) {
    for (std::size_t column = 0; column < width; ++column) {
      if constexpr (has_fractions) {
        momentum_[column] = 0.5 * momentum_[column] + gradient[column];
        reduced_[column] = has_momentum_ ? reduced_[column] - 0.25 * momentum_[column] : gradient[column];
      } else {
        reduced_[column] = gradient[column];
      }
    }
  }
  void expect_variables() const {
    const auto first = w_.get_value(0, variables_[2]).template to_vector<T>();
    for (std::size_t rank = 0; rank < w_.ranks(); ++rank) {
      expect_near(w_.get_value(rank, variables_[0]), assigned_[rank], 1e-5);
      expect_near(w_.get_value(rank, variables_[1]), incremented_[rank], 1e-5);
      expect_near(w_.get_value(rank, variables_[2]), reduced_, 1e-5);
      EXPECT_EQ(w_.get_value(rank, variables_[2]).template to_vector<T>(), first);
    }
  }

  world& w_;
  random_source& random_;
  const std::array<variable, 3> variables_ = {make_variable("assigned"), make_variable("incremented"),
                                              make_variable("reduced")};
  const bool has_momentum_ = has_fractions && draw(random_, 0, 1) == 0;
  const std::array<output_op, 3> ops_ = {draw_op(), draw_op(), draw_op()};
  decltype(make_function<T>(w_, variables_, ops_, has_momentum_)) f_ =
      make_function<T>(w_, variables_, ops_, has_momentum_);
  // By rank; then of all.
  std::vector<columns<T>> assigned_;
  std::vector<columns<T>> incremented_;
  columns<T> reduced_{};
  columns<T> momentum_{};
};

template <class T>
class WorldRandom : public testing::Test {};
using number_types = testing::Types<float, double, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                                    std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(WorldRandom, number_types);

// Ten thousand calls, the same in every run; twenty thousand others when there is time.
TYPED_TEST(WorldRandom, CallsGiveWhatOneProcessGives) {
  const bool has_time = test::soak_time(std::chrono::seconds(0)).count() > 0;
  const int trials = has_time ? 14 : 7;
  constexpr int calls = 25;
  random_source random(has_time ? test::seed() : 20'170'901);
  test::in_worlds({1, 2, 2, 3, 4, 4, 8}, [&](world& w) {
    for (int each = 0; each < trials && !this->HasFailure(); ++each) trial<TypeParam>(w, random).run(calls);
  });
}

}  // namespace
}  // namespace muster::world_random_test
