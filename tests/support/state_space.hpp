// SPDX-License-Identifier: BSL-1.0
#pragma once

// What models that go through all states of something share.

#include <cstdint>
#include <deque>
#include <vector>

namespace muster::test {

/// Whether each state leads to one that is an end. `edges`: of each state, the next ones.
template <class IsEnd>
[[nodiscard]] bool always_ends(const std::vector<std::vector<std::uint32_t>>& edges, const IsEnd& is_end) {
  std::vector<std::vector<std::uint32_t>> before(edges.size());
  for (std::uint32_t from = 0; from < edges.size(); ++from) {
    for (const auto to : edges[from]) before[to].push_back(from);
  }
  std::vector<bool> ends(edges.size());
  std::deque<std::uint32_t> open;
  for (std::uint32_t each = 0; each < edges.size(); ++each) {
    if (is_end(each)) ends[each] = true, open.push_back(each);
  }
  std::size_t found = open.size();
  for (; !open.empty(); open.pop_front()) {
    for (const auto each : before[open.front()]) {
      if (!ends[each]) ends[each] = true, ++found, open.push_back(each);
    }
  }
  return found == edges.size();
}

}  // namespace muster::test
