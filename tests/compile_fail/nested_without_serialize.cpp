// SPDX-License-Identifier: BSL-1.0
#include <memory>
#include <string>
#include <vector>

#include <muster/pool/pool.hpp>

struct node {
  std::string name;  // and no serialize()
};

struct tree {
  std::vector<std::unique_ptr<node>> nodes;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(nodes);
  }
};

std::size_t call(const muster::pool& pool) {
  return pool.apply([](const tree& given) { return given.nodes.size(); }, tree());
}
