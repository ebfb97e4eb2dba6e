// SPDX-License-Identifier: BSL-1.0
// The program of the README.
#include <cstdlib>
#include <iostream>
#include <vector>

#include <muster/pool/pool.hpp>

int square(int x) { return x * x; }

int main(int argc, char** argv) {
  muster::init(argc, argv);  // workers are this same program; they enter here and never return
  muster::pool pool({.workers = 4});

  auto five = pool.apply_async([](int a, int b) { return a + b; }, 2, 3);
  std::cout << five.get() << '\n';

  for (int y : pool.map(square, {1, 2, 3, 4})) std::cout << y << ' ';
  std::cout << '\n';

  auto crash = pool.apply_async([] { std::abort(); });
  try {
    crash.get();
  } catch (const muster::worker_died& e) {
    std::cout << e.what() << '\n';  // task, worker, process, SIGABRT; the pool goes on
  }
}
