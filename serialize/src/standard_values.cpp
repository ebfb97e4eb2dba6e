// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/standard_values.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

void throw_valueless_variant() {
  throw error(errc::not_serializable,
              "a std::variant holds no value, since a change of it has thrown: assign one before it is sent");
}

void throw_bad_alternative(std::int32_t index, std::size_t alternatives) {
  throw error(errc::not_serializable,
              text("the bytes of a std::variant of ", alternatives, " alternatives name number ", index));
}

}  // namespace muster::detail
