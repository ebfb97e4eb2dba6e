// SPDX-License-Identifier: BSL-1.0
// Demo 3 of Synkhronos: variables, whose values the ranks have, and everything that is done with them.
#include <cstdlib>
#include <iostream>

#include <muster/parallel/world.hpp>

#include "numbers.hpp"

using namespace example;

namespace {

void require(bool holds, const char* what) {
  std::cout << what << (holds ? "" : " NOT") << '\n';
  if (!holds) std::exit(EXIT_FAILURE);
}

void demo(unsigned ranks) {
  muster::world world({.ranks = ranks});
  const auto x = noise({8 * ranks + 3, 4}, 1);

  const auto d = world.scattered("d", x);
  std::cout << "rows by rank:";
  for (const auto each : world.get_lengths(d)) std::cout << ' ' << each;
  std::cout << '\n';
  require(world.gather(d, 0).to_vector<float>() == x.to_vector<float>(), "what was scattered is gathered");

  const auto s = world.replicate("s", tensor::zeros<float>({4}));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    world.set_value(rank, s, tensor::full<float>({4}, static_cast<float>(rank)));
  }
  require(world.get_value(ranks - 1, s).at<float>(0) == static_cast<float>(ranks - 1), "a rank has what it was given");
  world.all_reduce(s, muster::avg);
  require(world.get_value(0, s).at<float>(0) == static_cast<float>(ranks - 1) / 2, "all have the mean of it");

  const auto even = world.scattered("even", noise({8 * ranks, 4}, 2));
  world.all_gather(even);
  require(world.get_shapes(even).back() == (muster::tensor_shape{8 * ranks, 4}), "all have the rows of all");

  // A function of what lies in the ranks: no inputs.
  const auto f = world.function(total, muster::sliceable(d), muster::outputs(muster::sum("sum")));
  compare("sum of all rows", f(), total(x));
  compare("the same in slices", f.with({.num_slices = 3})(), total(x));
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return run([&] { demo(ranks_of(argc, argv)); });
}
