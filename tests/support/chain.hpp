// SPDX-License-Identifier: BSL-1.0
#pragma once

// A value that is nested as deep as a test wants.

#include <cstddef>
#include <memory>
#include <utility>

namespace muster::test {

struct node {
  std::unique_ptr<node> next;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(next);
  }
  node() = default;
  node(node&&) = default;
  node& operator=(node&&) = default;
  node(const node&) = delete;
  node& operator=(const node&) = delete;
  // One after the other: the usual destructor calls itself for each node.
  ~node() {
    while (next) next = std::move(next->next);
  }
};

inline node chain_of(std::size_t count) {
  node first;
  for (std::size_t i = 1; i < count; ++i) {
    auto more = std::make_unique<node>();
    more->next = std::move(first.next);
    first.next = std::move(more);
  }
  return first;
}
inline std::size_t length_of(const node& first) {
  std::size_t count = 1;
  for (const auto* each = first.next.get(); each != nullptr; each = each->next.get()) ++count;
  return count;
}

}  // namespace muster::test
