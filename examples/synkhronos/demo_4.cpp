// SPDX-License-Identifier: BSL-1.0
// Demo 4 of Synkhronos: calls with a part of the rows, by number, range and list, beside an input that has just those.
#include <random>
#include <vector>

#include <muster/parallel/data.hpp>
#include <muster/parallel/world.hpp>

#include "numbers.hpp"

using namespace example;

namespace {

float weighted_sum(const tensor& x, const tensor& weights, const tensor& y) {
  const auto a = product(x, y);
  const auto b = product(weights, y);
  double sum = 0;
  for (std::size_t row = 0; row < a.rows(); ++row) {
    sum += static_cast<double>(a.at<float>(row, 0)) * static_cast<double>(b.at<float>(row, 0));
  }
  return static_cast<float>(sum);
}

std::vector<int> a_hundred_of_a_thousand() {
  std::minstd_rand random(1);
  std::vector<int> made(100);
  for (auto& each : made) each = static_cast<int>(random() % 1000);
  made[1] = made[0];  // any row may come again
  return made;
}

tensor selected(const tensor& x, const std::vector<int>& which) {
  auto made = tensor::empty(x.dtype(), {which.size(), x.shape()[1]});
  for (std::size_t row = 0; row < which.size(); ++row) {
    made.row(row).copy_from(x.row(static_cast<std::size_t>(which[row])));
  }
  return made;
}

void demo(unsigned ranks) {
  muster::world world({.ranks = ranks});
  const auto f = world.function(weighted_sum, muster::rows("x", "weights"), muster::whole("y"),
                                muster::outputs(muster::sum("sum")));
  const auto x = noise({1000, 10}, 1);
  const auto y = noise({10, 1}, 2);
  const muster::data weights({.value = noise({100, 10}, 3), .minibatch = true, .name = "weights"});
  const auto list = a_hundred_of_a_thousand();

  for (const unsigned slices : {1U, 4U}) {
    compare("the first 100 rows", f.with({.batch = 100, .num_slices = slices})(x, weights, y),
            weighted_sum(x.slice(0, 100), weights.value(), y));
    compare("rows 100 to 199", f.with({.batch = muster::row_range{100, 200}, .num_slices = slices})(x, weights, y),
            weighted_sum(x.slice(100, 200), weights.value(), y));
    compare("100 rows of a list", f.with({.batch = list, .num_slices = slices})(x, weights, y),
            weighted_sum(selected(x, list), weights.value(), y));
  }
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return run([&] { demo(ranks_of(argc, argv)); });
}
