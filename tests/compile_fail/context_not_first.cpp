// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <muster/pool/ctx_pool.hpp>

int call(const muster::ctx_pool<std::string>& pool) {
  return pool.apply([](int x) { return x; }, 1);
}
