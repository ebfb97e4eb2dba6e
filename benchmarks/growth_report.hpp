// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <vector>

namespace growth {

/// A size, and how long something of that size took, in seconds.
struct point {
  double size = 0;
  double seconds = 0;
};

/// Something done at several sizes.
struct series {
  std::string name;  ///< "start n workers"
  std::vector<point> points = {};
};

/// How the time grows at the large end: the k of n to the k, from the last three points. Requires: three points.
[[nodiscard]] double exponent(const std::vector<point>& points);

/// A panel for each series, both axes logarithmic, with how it grows.
[[nodiscard]] std::string to_svg(const std::vector<series>& all, const std::string& machine);
/// A table: a row for each series, with the time for each size and how it grows.
[[nodiscard]] std::string to_markdown(const std::vector<series>& all, const std::string& machine);

}  // namespace growth
