// SPDX-License-Identifier: BSL-1.0
#include <string_view>

#include <muster/pool/pool.hpp>

std::size_t call(const muster::pool& pool, std::string_view text) {
  return pool.apply([](std::string_view each) { return each.size(); }, text);
}
