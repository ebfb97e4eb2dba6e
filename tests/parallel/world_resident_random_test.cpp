// SPDX-License-Identifier: BSL-1.0
// Random calls on rows that stay in the ranks: which of them a call is for is drawn for all ranks alike, or for each;
// alone, and together with rows that are dealt out.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "seed.hpp"
#include "soak_time.hpp"
#include "world_support.hpp"

namespace muster::world_resident_random_test {
namespace {

using random_source = std::mt19937;

std::size_t draw(random_source& random, std::size_t first, std::size_t last) {
  return std::uniform_int_distribution<std::size_t>(first, last)(random);
}

// The mean of the slice's rows, and a product that no rounding changes; then the rows themselves.
template <class T>
std::tuple<double, double, double, tensor> look_at(std::int64_t factor, const tensor& rows) {
  double sum = 0;
  double sign = 1;
  for (const auto each : rows.span<T>()) {
    sum += static_cast<double>(each) * static_cast<double>(factor);
    if (static_cast<int>(each) % 2 != 0) sign = -sign;
  }
  const auto mean = sum / static_cast<double>(rows.rows());
  return {mean, mean, sign, rows.clone()};
}

// Rows that are dealt out, those that are there already, and what comes of each pair of them.
template <class T>
std::tuple<tensor, tensor, double> look_at_both(const tensor& given, const tensor& there) {
  double products = 0;
  for (std::size_t row = 0; row < given.rows(); ++row) {
    products += static_cast<double>(given.at<T>(row)) * static_cast<double>(there.at<T>(row));
  }
  return {given.clone(), there.clone(), products};
}

template <class T>
class trial {
public:
  trial(world& w, random_source& random) : w_(w), random_(random) {}

  void run(int calls) {
    for (int call = 0; call < calls && !testing::Test::HasFailure(); ++call) {
      draw(random_, 0, 1) == 0 ? one_call() : one_joint_call();
    }
  }

private:
  using rows_of_rank = std::vector<T>;

  // Some of the rows of a rank that has `length`, and what they are.
  row_selection draw_rows(std::size_t length, std::vector<std::size_t>& chosen) {
    chosen.clear();
    const auto kind = length == 0 ? 0 : draw(random_, 0, 2);
    if (kind == 0) {
      for (std::size_t row = 0; row < length; ++row) chosen.push_back(row);
      return {};
    }
    if (kind == 1) {
      const auto first = draw(random_, 0, length - 1);
      const auto last = draw(random_, first + 1, length);
      for (auto row = first; row < last; ++row) chosen.push_back(row);
      return row_range{first, last};
    }
    chosen.resize(draw(random_, 1, 2 * length));
    for (auto& each : chosen) each = draw(random_, 0, length - 1);
    return chosen;
  }

  // What each rank is to see, and the call that makes it see that.
  std::vector<rows_of_rank> draw_selection(run_options& options) {
    const auto lengths = w_.get_lengths(rows_);
    const auto shortest = *std::ranges::min_element(lengths);
    const bool is_for_each = shortest != 0 && draw(random_, 0, 1) == 0;
    std::vector<row_selection> by_rank;
    std::vector<std::size_t> chosen;
    auto everywhere = draw_rows(shortest, chosen);
    std::vector<rows_of_rank> seen;
    for (std::size_t rank = 0; rank < w_.ranks(); ++rank) {
      if (is_for_each) {
        const auto drawn = draw_rows(lengths[rank], chosen);
        by_rank.push_back(drawn.is_all() ? row_selection(row_range{0, lengths[rank]}) : drawn);
      }
      const auto own = w_.get_value(rank, rows_).template to_vector<T>();
      if (!is_for_each && everywhere.is_all()) {
        seen.push_back(own);
        continue;
      }
      seen.emplace_back();
      for (const auto row : chosen) seen.back().push_back(own[row]);
    }
    if (is_for_each) {
      options.batch_s = by_rank;
    } else if (!everywhere.is_all()) {
      options.batch_s = everywhere;
    }
    return seen;
  }

  void one_call() {
    run_options options{.num_slices = static_cast<unsigned>(draw(random_, 1, 5))};
    const auto seen = draw_selection(options);
    const auto factor = static_cast<std::int64_t>(draw(random_, 1, 9));
    SCOPED_TRACE(testing::Message() << w_.ranks() << " ranks, " << options.num_slices << " slices, factor " << factor);
    rows_of_rank all;
    for (const auto& each : seen) all.insert(all.end(), each.begin(), each.end());
    if (all.empty()) {
      static_cast<void>(test::refusal([&] { static_cast<void>(f_.with(options)(factor)); }));
      return;
    }
    const auto [mean, mean_by_rank, sign, gathered] = f_.with(options)(factor);
    EXPECT_EQ(gathered.template to_vector<T>(), all);
    expect_near(mean, mean_of(all) * static_cast<double>(factor));
    double means = 0;
    double ranks = 0;
    for (const auto& each : seen) {
      if (each.empty()) continue;
      means += mean_of(each) * static_cast<double>(factor);
      ++ranks;
    }
    expect_near(mean_by_rank, means / ranks);
    const auto odd = std::ranges::count_if(all, [](T each) { return static_cast<int>(each) % 2 != 0; });
    EXPECT_EQ(sign, odd % 2 == 0 ? 1 : -1);
  }

  // The rows of each rank that go with those that it is dealt, and the selection that says so; nothing where there are
  // none in some rank.
  std::vector<std::vector<std::size_t>> draw_partners(run_options& options) {
    const auto lengths = w_.get_lengths(rows_);
    const auto shortest = *std::ranges::min_element(lengths);
    std::vector<std::vector<std::size_t>> chosen(w_.ranks());
    const auto kind = draw(random_, 0, 2);
    if (kind == 0) {
      for (std::size_t rank = 0; rank < w_.ranks(); ++rank) {
        chosen[rank].resize(lengths[rank]);
        std::iota(chosen[rank].begin(), chosen[rank].end(), std::size_t{0});
      }
      return chosen;
    }
    if (shortest == 0) return {};
    if (kind == 1) {
      std::vector<std::size_t> everywhere(draw(random_, 1, 2 * shortest));
      for (auto& each : everywhere) each = draw(random_, 0, shortest - 1);
      std::ranges::fill(chosen, everywhere);
      options.batch_s = everywhere;
      return chosen;
    }
    const auto total = draw(random_, w_.ranks(), 5 * w_.ranks());
    std::vector<row_selection> by_rank;
    for (std::size_t rank = 0; rank < w_.ranks(); ++rank) {
      chosen[rank].resize(part_of({0, total}, rank, w_.ranks()).size());
      for (auto& each : chosen[rank]) each = draw(random_, 0, lengths[rank] - 1);
      by_rank.push_back(chosen[rank]);
    }
    options.batch_s = by_rank;
    return chosen;
  }

  // So many of the rows of an input, and that input.
  tensor draw_batch(std::size_t count, run_options& options, rows_of_rank& seen) {
    const auto length = count + draw(random_, 0, 4);
    auto made = tensor::empty<T>({length});
    for (auto& each : made.template span<T>()) each = static_cast<T>(draw(random_, 0, 100));
    std::vector<std::size_t> chosen(count);
    const auto first = draw(random_, 0, length - count);
    std::iota(chosen.begin(), chosen.end(), first);
    if (draw(random_, 0, 1) == 0) {
      for (auto& each : chosen) each = draw(random_, 0, length - 1);
      options.batch = chosen;
    } else if (length != count || draw(random_, 0, 1) == 0) {
      options.batch = row_range{first, first + count};
    }
    for (const auto row : chosen) seen.push_back(made.template at<T>(row));
    return made;
  }

  void one_joint_call() {
    run_options options{.num_slices = static_cast<unsigned>(draw(random_, 1, 5))};
    const auto chosen = draw_partners(options);
    rows_of_rank there;
    for (std::size_t rank = 0; rank < chosen.size(); ++rank) {
      const auto own = w_.get_value(rank, rows_).template to_vector<T>();
      for (const auto row : chosen[rank]) there.push_back(own[row]);
    }
    if (there.empty()) return;
    rows_of_rank given;
    const auto input = draw_batch(there.size(), options, given);
    SCOPED_TRACE(testing::Message() << w_.ranks() << " ranks, " << options.num_slices << " slices, " << there.size()
                                    << " rows of " << input.rows());
    const auto [first, second, products] = both_.with(options)(input);
    EXPECT_EQ(first.template to_vector<T>(), given);
    EXPECT_EQ(second.template to_vector<T>(), there);
    expect_near(products, std::inner_product(given.begin(), given.end(), there.begin(), 0.0));
    options.batch = row_range{0, given.size() + 1};
    const auto longer = tensor::zeros<T>({given.size() + 1});
    EXPECT_THAT(test::refusal([&] { static_cast<void>(both_.with(options)(longer)); }), testing::HasSubstr("rank "));
  }

  static double mean_of(const rows_of_rank& rows) {
    double sum = 0;
    for (const auto each : rows) sum += static_cast<double>(each);
    return sum / static_cast<double>(rows.size());
  }
  static void expect_near(double found, double expected) {
    EXPECT_NEAR(found, expected, 1e-12 * std::max(1.0, std::abs(expected)));
  }

  variable make_rows() {
    auto made = tensor::empty<T>({draw(random_, 0, 5 * w_.ranks())});
    for (auto& each : made.template span<T>()) each = static_cast<T>(draw(random_, 0, 100));
    return w_.scattered("rows", made);
  }

  world& w_;
  random_source& random_;
  const variable rows_ = make_rows();
  const decltype(std::declval<world&>().function(look_at<T>, whole("factor"), sliceable(std::declval<variable>()),
                                                 outputs(avg(), mean_of_ranks(), prod(), gather()))) f_ =
      w_.function(look_at<T>, whole("factor"), sliceable(rows_), outputs(avg(), mean_of_ranks(), prod(), gather()));
  const decltype(std::declval<world&>().function(look_at_both<T>, rows("given"), sliceable(std::declval<variable>()),
                                                 outputs(gather(), gather(), sum()))) both_ =
      w_.function(look_at_both<T>, rows("given"), sliceable(rows_), outputs(gather(), gather(), sum()));
};

template <class T>
class WorldResidentRandom : public testing::Test {};
using number_types = testing::Types<std::uint8_t, std::int64_t, double>;
TYPED_TEST_SUITE(WorldResidentRandom, number_types);

// The same in every run; others, and more of them, when there is time.
TYPED_TEST(WorldResidentRandom, CallsGiveWhatOneProcessGives) {
  const bool has_time = test::soak_time(std::chrono::seconds(0)).count() > 0;
  random_source random(test::seed(20'170'902));
  test::in_worlds({1, 2, 3, 5, 8}, [&](world& w) {
    for (int each = 0; each < (has_time ? 100 : 10) && !this->HasFailure(); ++each) {
      trial<TypeParam>(w, random).run(30);
    }
  });
}

}  // namespace
}  // namespace muster::world_resident_random_test
