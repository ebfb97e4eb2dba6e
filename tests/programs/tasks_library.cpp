// SPDX-License-Identifier: BSL-1.0
// A shared library that defines tasks. TASKS_VERSION makes builds of it that differ.
#include "tasks_library.hpp"

namespace tasks {

int triple(int x) { return TASKS_VERSION * 0 + 3 * x; }

int apply_lambda_of_library(const muster::pool& pool, int x) {
  return pool.apply([](int y) { return y + TASKS_VERSION; }, x);
}

}  // namespace tasks

extern "C" int apply_by_c_name(const muster::pool& pool, int x) { return tasks::apply_lambda_of_library(pool, x); }
