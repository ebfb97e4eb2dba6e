// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <muster/pool/ctx_pool.hpp>

void call() {
  const muster::ctx_pool<std::string> pool([](const std::vector<int>&) { return 5; });
}
