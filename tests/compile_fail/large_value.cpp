// SPDX-License-Identifier: BSL-1.0
// A value that is too large, in the way that INSIDE names, for all compilers; too_large.cpp has all ways, for Clang.
#include <array>
#include <cstddef>
#include <vector>

#include <muster/pool/pool.hpp>

struct large {
  std::array<std::byte, 2 << 20> bytes;
};

namespace ways {

template <class Pool>
void argument(const Pool& pool) {
  pool.apply([](const large&) {}, large());
}

template <class Pool>
void result(const Pool& pool) {
  pool.apply([] { return large(); });
}

template <class Pool>
void element(const Pool& pool) {
  pool.map([](const large&) {}, std::vector<large>());
}

}  // namespace ways

template void ways::INSIDE(const muster::pool&);
