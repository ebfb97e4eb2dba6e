// SPDX-License-Identifier: BSL-1.0
#include "explorer.hpp"

#include <xxhash.h>

namespace muster::model {

fingerprint fingerprint_of(const void* bytes, std::size_t size) {
  const auto hash = XXH3_128bits(bytes, size);
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace muster::model
