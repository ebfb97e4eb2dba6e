// SPDX-License-Identifier: BSL-1.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <muster/base/assert.hpp>

namespace muster::detail {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "muster: %s:%d: broken invariant in process %d: %s\n", file, line, ::getpid(), condition);
  std::abort();
}

}  // namespace muster::detail
