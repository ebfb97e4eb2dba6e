// SPDX-License-Identifier: BSL-1.0
// What the other sources of this folder get wrong, right: this one compiles.
#include <string>
#include <vector>

#include <muster/pool/pool.hpp>

int add(int a, int b) { return a + b; }

int control(const muster::pool& pool, int offset) {
  const std::vector<int> xs{1, 2, 3};
  const auto sums = pool.map(muster::bind_front(add, offset), xs);
  const auto length =
      pool.apply([](const std::string& s) { return static_cast<int>(s.size()); }, "a literal is sent as a string");
  const auto shared = pool.share(offset);
  return pool.apply([](int a, int b) { return a + b; }, sums.front(), length + *shared);
}
