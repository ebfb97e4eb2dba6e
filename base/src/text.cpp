// SPDX-License-Identifier: BSL-1.0
#include <muster/base/text.hpp>

#include <array>
#include <iomanip>

namespace muster {

std::string text_of_bytes(std::uint64_t count) {
  constexpr std::array units = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(count);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  detail::text_writer out;
  out << std::fixed << std::setprecision(unit == 0 ? 0 : 1) << value << ' ' << units[unit];
  return std::move(out).str();
}

}  // namespace muster
