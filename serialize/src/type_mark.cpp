// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/type_mark.hpp>

namespace muster {

// FNV-1a.
std::uint64_t detail::fingerprint_of(const char* name) noexcept {
  std::uint64_t found = 0xcbf29ce484222325U;
  for (; *name != '\0'; ++name) found = (found ^ static_cast<unsigned char>(*name)) * 0x100000001b3U;
  return found;
}

}  // namespace muster
