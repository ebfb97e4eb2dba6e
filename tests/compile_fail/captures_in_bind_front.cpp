// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/pool.hpp>

int call(const muster::pool& pool, int offset) {
  return pool.apply(muster::bind_front([offset](int a, int b) { return a + b + offset; }, 1), 2);
}
