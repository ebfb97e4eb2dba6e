// SPDX-License-Identifier: BSL-1.0
// An executable without build-id cannot be told from another build of itself: it is refused, with what to do.
#include <muster/pool/pool.hpp>

#include "check.hpp"

int main(int argc, char** argv) {
  muster::init(argc, argv);
  expect_error(muster::errc::module_mismatch, {"the executable has no build-id", "-Wl,--build-id=sha1"},
               [] { const muster::pool pool({.workers = 1}); });
}
