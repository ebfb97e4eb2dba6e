// SPDX-License-Identifier: BSL-1.0
#include <memory>
#include <string>

#include <muster/pool/pool.hpp>

struct node {
  std::string name;  // and no serialize()
};

std::size_t call(const muster::pool& pool) {
  return pool.apply([](const std::unique_ptr<node>& given) { return given->name.size(); }, std::unique_ptr<node>());
}
