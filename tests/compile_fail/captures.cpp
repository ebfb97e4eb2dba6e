// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/pool.hpp>

int call(const muster::pool& pool, int offset) {
  return pool.apply([offset](int x) { return x + offset; }, 1);
}
