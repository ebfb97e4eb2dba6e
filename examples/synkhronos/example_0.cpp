// SPDX-License-Identifier: BSL-1.0
// The first introduction example of Synkhronos: a function of a matrix' rows, computed in all ranks.
#include <muster/parallel/world.hpp>

#include "numbers.hpp"

using namespace example;

namespace {

float mean_of_product(const tensor& x, const tensor& y) {
  const auto made = product(x, y);
  return total(made) / static_cast<float>(made.size());
}

void demo(unsigned ranks) {
  muster::world world({.ranks = ranks});

  const auto f =
      world.function(mean_of_product, muster::rows("x"), muster::whole("y"), muster::outputs(muster::avg("mean")));
  const auto x = noise({100, 10}, 1);
  const auto y = noise({10, 1}, 2);
  compare("mean", f(x, y), f.local(x, y));
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return run([&] { demo(ranks_of(argc, argv)); });
}
