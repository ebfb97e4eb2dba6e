// SPDX-License-Identifier: BSL-1.0
// The second introduction example of Synkhronos: an update changes each rank's replica by what that rank has found;
// collectives then make the replicas the same again. Two ranks.
#include <iostream>

#include <muster/device/tensor_print.hpp>
#include <muster/parallel/world.hpp>

#include "numbers.hpp"

namespace {

using muster::tensor;

tensor scaled_sums(const tensor& x, const tensor& s) {
  auto made = tensor::zeros<float>({2});
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (std::size_t column = 0; column < 2; ++column) {
      made.at<float>(column) += x.at<float>(row, column) * s.at<float>(column);
    }
  }
  return made;
}

void demo() {
  muster::world world({.ranks = 2});
  const auto x = tensor::from<float>({1, 1, 2, 2, 3, 3, 4, 4}, {4, 2});
  const auto ones = tensor::ones<float>({2});
  const auto s = world.replicate("s", ones);
  const auto f = world.function(scaled_sums, muster::rows("x"), muster::replicas(s),
                                muster::updates(muster::assign(s, muster::sum)));
  const auto show = [&](const char* after) { std::cout << after << '\n' << world.gather(s) << '\n'; };

  f(x);
  show("after a call, each rank has the sums of its own rows:");
  world.reduce_in_place(s, muster::sum);
  show("after a reduction, rank 0 has those of all:");
  world.broadcast(s, ones);
  show("after a broadcast:");
  f(x);
  world.all_reduce(s, muster::sum);
  show("after another call and an all-reduce:");
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return example::run(demo);
}
