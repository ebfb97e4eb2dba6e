// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/codec.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

void throw_short_frame(std::size_t bytes, std::size_t needed) {
  throw error(errc::not_serializable, text("a frame of ", bytes, " bytes was to be decoded into values of ", needed));
}

}  // namespace muster::detail
