// SPDX-License-Identifier: BSL-1.0
#include <cstddef>
#include <iostream>
#include <vector>

#include <muster/collectives/graph.hpp>
#include <muster/parallel/world.hpp>
#include <muster/pool/pool.hpp>

int main(int argc, char** argv) {
  muster::init(argc, argv);
  const muster::pool pool({.workers = 2});
  int sum = 0;
  for (const int each : pool.map([](int x) { return x * x; }, {1, 2, 3})) sum += each;
  // Narrowed as by a call of std::invoke, whatever warnings the program asks for: tests/package/consumer/CMakeLists.txt
  if (pool.apply([](std::size_t n) { return n; }, sum) != 14) return 1;
  if (pool.map([](float x) { return x; }, std::vector<double>{0.5}).front() != 0.5F) return 1;
  std::cout << "sum of squares: " << sum << '\n';
  muster::graph graph;
  graph.on(0).send(graph.on(0).input("x", {muster::dtype::f32, {3}}), {.to = 1, .tag = 1});
  muster::world world({.ranks = 2});
  const auto most = world.function([](const muster::tensor& x) { return x.at<int>(x.rows() - 1); }, muster::rows("x"),
                                   muster::outputs(muster::max("most")));
  if (most(muster::tensor::arange<int>(9)) != 8) return 1;
  return sum == 14 && graph.schedule().of(0).size() == 2 ? 0 : 1;
}
