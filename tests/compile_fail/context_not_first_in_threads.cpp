// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <muster/pool/ctx_thread_pool.hpp>

std::vector<int> call(const muster::ctx_thread_pool<std::string>& pool) {
  return pool.map([](int x) { return x; }, {1, 2});
}
