// SPDX-License-Identifier: BSL-1.0
#include <iostream>

#include <muster/pool/pool.hpp>

int main(int argc, char** argv) {
  muster::init(argc, argv);
  const muster::pool pool({.workers = 2});
  int sum = 0;
  for (const int each : pool.map([](int x) { return x * x; }, {1, 2, 3})) sum += each;
  std::cout << "sum of squares: " << sum << '\n';
  return sum == 14 ? 0 : 1;
}
