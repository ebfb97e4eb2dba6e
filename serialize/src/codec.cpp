// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/codec.hpp>

#include <string_view>

#include <muster/base/detail/demangle.hpp>
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

void throw_explained(const cereal::Exception& failure) {
  const std::string_view said(failure.what());
  if (said.find("unregistered polymorphic") == std::string_view::npos) throw;
  throw error(errc::not_serializable,
              text(said.substr(0, said.find('\n')),
                   " Write CEREAL_REGISTER_TYPE(class) in a source that has included <muster/serialize/archive.hpp> "
                   "before it: a class is registered with the archives that were included before, and muster's are "
                   "archives of their own."));
}

}  // namespace muster::detail
