// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/codec.hpp>

#include <muster/base/demangle.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

void throw_short_frame(std::size_t bytes, std::size_t needed) {
  throw error(errc::not_serializable, text("a frame of ", bytes, " bytes was to be decoded into values of ", needed));
}

void require_whole_object(const std::type_info& object, const std::type_info& sent) {
  if (object == sent) return;
  throw error(errc::not_serializable,
              text("an object of class ", name_of(object), " was given as its base ", name_of(sent),
                   " and would arrive without its own members: give a std::unique_ptr to it, and register its class "
                   "with CEREAL_REGISTER_TYPE"));
}

}  // namespace muster::detail
