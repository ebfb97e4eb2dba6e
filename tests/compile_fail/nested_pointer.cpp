// SPDX-License-Identifier: BSL-1.0
#include <string_view>
#include <vector>

#include <muster/pool/pool.hpp>

struct page {
  std::vector<std::string_view> lines;

  template <class Archive>
  void serialize(Archive& archive) {
    archive & lines;
  }
};

std::size_t call(const muster::pool& pool) {
  return pool.apply([](const page& given) { return given.lines.size(); }, page());
}
