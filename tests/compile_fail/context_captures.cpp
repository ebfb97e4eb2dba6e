// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <muster/pool/ctx_pool.hpp>

int call(const muster::ctx_pool<std::string>& pool, int offset) {
  return pool.apply([offset](std::string&, int x) { return x + offset; }, 1);
}
