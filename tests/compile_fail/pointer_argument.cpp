// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/pool.hpp>

int call(const muster::pool& pool, int* where) {
  return pool.apply([](int* at) { return *at; }, where);
}
