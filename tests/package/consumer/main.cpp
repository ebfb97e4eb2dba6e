// SPDX-License-Identifier: BSL-1.0
#include <iostream>

#include <muster/collectives/graph.hpp>
#include <muster/parallel/world.hpp>
#include <muster/pool/pool.hpp>

int main(int argc, char** argv) {
  muster::init(argc, argv);
  const muster::pool pool({.workers = 2});
  int sum = 0;
  for (const int each : pool.map([](int x) { return x * x; }, {1, 2, 3})) sum += each;
  std::cout << "sum of squares: " << sum << '\n';
  muster::graph graph;
  graph.on(0).send(graph.on(0).input("x", {muster::dtype::f32, {3}}), {.to = 1, .tag = 1});
  muster::world world({.ranks = 2});
  const auto most = world.function([](const muster::tensor& x) { return x.at<int>(x.rows() - 1); }, muster::rows("x"),
                                   muster::outputs(muster::max("most")));
  if (most(muster::tensor::arange<int>(9)) != 8) return 1;
  return sum == 14 && graph.schedule().of(0).size() == 2 ? 0 : 1;
}
