// SPDX-License-Identifier: BSL-1.0
#include <muster/params/store_key.hpp>

#include <ostream>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

std::ostream& operator<<(std::ostream& out, const store_key& key) {
  if (key.is_number()) return out << key.number();
  return out << '\'' << key.text() << '\'';
}

void store_key::throw_too_large(std::uint64_t number) {
  throw error(errc::invalid_argument,
              muster::text("the key ", number,
                           " of a store is too large: numbers are signed, of 64 bits; the largest is ", INT64_MAX));
}

}  // namespace muster
