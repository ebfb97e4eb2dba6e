// SPDX-License-Identifier: BSL-1.0
#include <memory>
#include <vector>

#include <muster/pool/thread_pool.hpp>

struct handle {
  std::unique_ptr<int> number;
};

std::vector<int> call(const muster::thread_pool& pool, const std::vector<handle>& handles) {
  return pool.map([](handle given) { return *given.number; }, handles);
}
