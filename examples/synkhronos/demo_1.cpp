// SPDX-License-Identifier: BSL-1.0
// Demo 1 of Synkhronos: outputs that are joined in different ways, and a call that takes its rows in slices, so that
// what the function needs of memory depends on the slice and not on the batch.
#include <algorithm>
#include <tuple>

#include <muster/parallel/world.hpp>

#include "numbers.hpp"

using namespace example;

namespace {

std::tuple<float, float, float> mean_sum_and_max(const tensor& x, const tensor& y) {
  const auto made = product(x, y);
  const auto sum = total(made);
  return {sum / static_cast<float>(made.rows()), sum, std::ranges::max(made.span<float>())};
}

void demo(unsigned ranks) {
  muster::world world({.ranks = ranks});

  const auto f = world.function(mean_sum_and_max, muster::rows("x"), muster::whole("y"),
                                muster::outputs(muster::avg("mean"), muster::sum("sum"), muster::max("max")));
  const auto x = noise({1000, 10}, 1);
  const auto y = noise({10, 5}, 2);
  const auto [serial_mean, serial_sum, serial_max] = f.local(x, y);
  for (const unsigned slices : {1U, 4U}) {
    const auto [mean, sum, most] = f.with({.num_slices = slices})(x, y);
    compare("mean", mean, serial_mean);
    compare("sum", sum, serial_sum);
    compare("max", most, serial_max);
  }
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return run([&] { demo(ranks_of(argc, argv)); });
}
