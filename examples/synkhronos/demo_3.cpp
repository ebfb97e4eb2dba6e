// SPDX-License-Identifier: BSL-1.0
// Demo 3 of Synkhronos: variables, whose values the ranks have, and everything that is done with them.
#include <algorithm>
#include <cstddef>
#include <iostream>

#include <muster/parallel/world.hpp>

#include "numbers.hpp"

using namespace example;

namespace {

// Whether all elements that a rank has are this.
bool has(const muster::world& world, std::size_t rank, const muster::variable& what, float value) {
  return std::ranges::all_of(world.get_value(rank, what).to_vector<float>(), [=](float each) { return each == value; });
}

bool all_have(const muster::world& world, const muster::variable& what, float value) {
  for (std::size_t rank = 0; rank < world.ranks(); ++rank) {
    if (!has(world, rank, what, value)) return false;
  }
  return true;
}

void demo(unsigned ranks) {
  muster::world world({.ranks = ranks});
  const auto x = noise({8 * ranks + 3, 4}, 1);

  const auto d = world.scattered("d", x);
  std::cout << "rows by rank:";
  for (const auto each : world.get_lengths(d)) std::cout << ' ' << each;
  std::cout << '\n';
  require(world.gather(d, 0).to_vector<float>() == x.to_vector<float>(), "what was scattered is gathered");
  const auto y = noise({5 * ranks + 1, 4}, 3);
  world.scatter(d, y);
  require(world.gather(d, 0).to_vector<float>() == y.to_vector<float>(), "and again, with fewer rows");

  const auto s = world.replicate("s", tensor::zeros<float>({4}));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    world.set_value(rank, s, tensor::full<float>({4}, static_cast<float>(rank)));
  }
  const auto last = static_cast<float>(ranks - 1);
  require(has(world, ranks - 1, s, last), "a rank has what it was given");
  compare("the greatest, reduced for the caller", world.reduce(s, muster::max), tensor::full<float>({4}, last));
  require(has(world, 0, s, 0) && has(world, ranks - 1, s, last), "which leaves each rank what it has");
  world.all_reduce(s, muster::avg);
  require(all_have(world, s, last / 2), "all have the mean of it");

  world.broadcast(s, tensor::full<float>({4}, 5.0F));
  require(all_have(world, s, 5), "all have what is broadcast");
  world.set_value(0, s, tensor::full<float>({4}, 6.0F));
  require(has(world, 0, s, 6) && (ranks == 1 || has(world, ranks - 1, s, 5)), "the master has another value");
  world.broadcast(s);
  require(all_have(world, s, 6), "all have the master's");

  const auto even = world.scattered("even", noise({8 * ranks, 4}, 2));
  world.all_gather(even);
  require(world.get_shapes(even).back() == (muster::tensor_shape{8 * ranks, 4}), "all have the rows of all");

  // A function of what lies in the ranks: no inputs.
  const auto f = world.function(total, muster::sliceable(d), muster::outputs(muster::sum("sum")));
  compare("sum of all rows", f(), total(y));
  compare("the same in slices", f.with({.num_slices = 3})(), total(y));
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return run([&] { demo(ranks_of(argc, argv)); });
}
