// SPDX-License-Identifier: BSL-1.0
#include <thread>

#include <muster/pool/pool.hpp>

void call(const muster::pool& pool) {
  pool.apply([] { return std::thread(); }).join();
}
