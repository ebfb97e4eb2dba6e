// SPDX-License-Identifier: BSL-1.0
// A library that cannot be told from others may not define tasks; the program's own tasks work beside it.
#include "check.hpp"
#include "tasks_library.hpp"

int main(int argc, char** argv) {
  muster::init(argc, argv);
  const muster::pool pool({.workers = 1});
  expect_error(muster::errc::module_mismatch, {"cannot be named for the workers", REASON, "-Wl,--build-id=sha1"},
               [&] { tasks::apply_lambda_of_library(pool, 4); });
  check(pool.apply([](int x) { return x + 1; }, 1) == 2, "the program's own tasks");
  check(pool.apply([](int x) { return tasks::triple(x); }, 5) == 15, "even those that call the library");
}
