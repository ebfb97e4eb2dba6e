// SPDX-License-Identifier: BSL-1.0
// A program that forgot muster::init gets an error that tells it so; no process is started.
#include <muster/pool/pool.hpp>

#include "check.hpp"

int main() {
  expect_error(muster::errc::not_initialized, {"muster::init(argc, argv)", "first line of main()"},
               [] { const muster::pool pool({.workers = 1}); });
}
