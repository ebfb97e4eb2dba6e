// SPDX-License-Identifier: BSL-1.0
// Tasks may live in shared libraries that the program is linked with.
#include <vector>

#include "check.hpp"
#include "tasks_library.hpp"

int main(int argc, char** argv) {
  muster::init(argc, argv);
  const muster::pool pool({.workers = 2});
  check(pool.apply(tasks::triple, 4) == 12, "a function of the library");
  check(tasks::apply_lambda_of_library(pool, 4) == 5, "a lambda inside the library");
  check(pool.apply([](int x) { return tasks::triple(x); }, 5) == 15, "a lambda of the program that calls the library");
  check(pool.map(tasks::triple, {1, 2, 3}) == std::vector{3, 6, 9}, "a map of a function of the library");
}
