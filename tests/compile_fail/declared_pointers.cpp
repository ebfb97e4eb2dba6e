// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/pool.hpp>

struct node {
  int key;
  const node* next;
};
template <>
inline constexpr bool muster::holds_pointers<node> = true;

int call(const muster::pool& pool) {
  return pool.apply([](const node& given) { return given.key; }, node{.key = 1, .next = nullptr});
}
