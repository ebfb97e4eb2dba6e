// SPDX-License-Identifier: BSL-1.0
#include <vector>

#include <muster/pool/pool.hpp>

std::vector<int> call(const muster::pool& pool, const std::vector<int>& xs, int& sum) {
  return pool.map([&sum](int x) { return x + sum; }, xs);
}
