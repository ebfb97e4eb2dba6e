// SPDX-License-Identifier: BSL-1.0
// A worker that loads another build of a library is refused at the handshake, with both tables of modules.
// Arguments: the directory of the other build.
#include <cstdlib>

#include "check.hpp"
#include "tasks_library.hpp"

int main(int argc, char** argv) {
  muster::init(argc, argv);
  {
    const muster::pool pool({.workers = 1});
    check(tasks::apply_lambda_of_library(pool, 4) == 5, "the build that the program runs");
  }
  check(argc == 2, "one argument");
  ::setenv("LD_LIBRARY_PATH", argv[1], 1);
  expect_error(muster::errc::module_mismatch, {"libprogram_tasks.so is another build", "the parent has", "the worker"},
               [] { const muster::pool pool({.workers = 1}); });
}
