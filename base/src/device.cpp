// SPDX-License-Identifier: BSL-1.0
#include <muster/base/device.hpp>

#include <charconv>
#include <ostream>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

device device::parse(std::string_view name) {
  constexpr std::string_view numbered = "cuda:";
  if (name == "cpu") return cpu();
  if (name == "cuda") return cuda();
  std::uint16_t index = 0;
  if (name.starts_with(numbered)) {
    const auto* const end = name.data() + name.size();
    const auto found = std::from_chars(name.data() + numbered.size(), end, index);
    if (found.ec == std::errc() && found.ptr == end) return cuda(index);
  }
  throw error(errc::invalid_argument,
              text("'", name, "' names no device: write cpu, cuda, or cuda: and a number up to ", UINT16_MAX));
}

std::ostream& operator<<(std::ostream& out, device which) {
  if (which.is_cpu()) return out << "cpu";
  return out << "cuda:" << which.index();
}

}  // namespace muster
