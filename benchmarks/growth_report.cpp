// SPDX-License-Identifier: BSL-1.0
// Pictures and tables of how times grow.
#include "growth_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace growth {

namespace {

std::string with_unit(double value, const std::array<const char*, 4>& units, double step) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= step) {
    value /= step;
    ++unit;
  }
  std::ostringstream text;
  text << std::setprecision(value >= 100 ? 4 : 3) << value << units[unit];
  return std::move(text).str();
}

std::string time_text(double seconds) {
  if (seconds < 1) return with_unit(seconds * 1e9, {" ns", " µs", " ms", " s"}, 1000);
  return with_unit(seconds, {" s", " s", " s", " s"}, 1e9);
}

// "64", "64 Ki", "4 Gi" where it is a power of two; "10 k", "10 M" otherwise.
std::string size_text(double size) {
  const bool is_binary = size >= 1024 && std::fmod(std::log2(size), 1) == 0;
  return is_binary ? with_unit(size, {"", " Ki", " Mi", " Gi"}, 1024) : with_unit(size, {"", " k", " M", " G"}, 1000);
}

// "n^0.98", or "constant".
std::string growth_text(const std::vector<point>& points) {
  constexpr double least = 0.05;
  const double power = exponent(points);
  if (std::abs(power) < least) return "constant";
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << "n^" << power;
  return std::move(text).str();
}

}  // namespace

double exponent(const std::vector<point>& points) {
  const auto count = std::min<std::size_t>(3, points.size());
  const auto first = points.end() - static_cast<std::ptrdiff_t>(count);
  double x = 0;
  double y = 0;
  for (auto each = first; each != points.end(); ++each) {
    x += std::log(each->size) / static_cast<double>(count);
    y += std::log(each->seconds) / static_cast<double>(count);
  }
  double both = 0;
  double square = 0;
  for (auto each = first; each != points.end(); ++each) {
    both += (std::log(each->size) - x) * (std::log(each->seconds) - y);
    square += (std::log(each->size) - x) * (std::log(each->size) - x);
  }
  return both / square;
}

std::string to_markdown(const std::vector<series>& all, const std::string& machine) {
  std::ostringstream table;
  table << machine << "\n\n| what | size: time | grows as |\n|---|---|---|\n";
  for (const auto& each : all) {
    table << "| " << each.name << " | ";
    for (const auto& one : each.points) table << size_text(one.size) << ": " << time_text(one.seconds) << "; ";
    table << "| " << growth_text(each.points) << " |\n";
  }
  return std::move(table).str();
}

// ---- the picture

namespace {

constexpr double width = 290;
constexpr double height = 200;
constexpr double gap = 70;
constexpr std::size_t columns = 3;

struct range {
  double low = 0;  // logarithms, of base 10
  double high = 0;
};

template <class Member>
range range_of(const std::vector<point>& points, Member which) {
  range found{.low = 1e9, .high = -1e9};
  for (const auto& each : points) {
    found.low = std::min(found.low, std::log10(each.*which));
    found.high = std::max(found.high, std::log10(each.*which));
  }
  const double room = std::max(1.0, found.high - found.low) * 0.08;
  return {.low = found.low - room, .high = std::max(found.high, found.low + 1) + room};
}

void text(std::ostream& to, double x, double y, const std::string& what, const char* anchor, int size) {
  to << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\" font-size=\"" << size << "\">"
     << what << "</text>\n";
}

void panel(std::ostream& to, const series& what, double left, double top) {
  const auto sizes = range_of(what.points, &point::size);
  const auto times = range_of(what.points, &point::seconds);
  const auto across = [&](double size) {
    return left + width * (std::log10(size) - sizes.low) / (sizes.high - sizes.low);
  };
  const auto up = [&](double seconds) {
    return top + height * (1 - (std::log10(seconds) - times.low) / (times.high - times.low));
  };
  to << "<rect x=\"" << left << "\" y=\"" << top << "\" width=\"" << width << "\" height=\"" << height
     << R"(" fill="none" stroke="#404040"/>)" << '\n';
  text(to, left, top - 10, what.name + ": " + growth_text(what.points), "start", 14);
  for (double decade = std::ceil(times.low); decade <= times.high; ++decade) {
    const double y = up(std::pow(10, decade));
    to << "<line x1=\"" << left << "\" y1=\"" << y << "\" x2=\"" << left + width << "\" y2=\"" << y
       << R"(" stroke="#d8d8d8"/>)" << '\n';
    text(to, left - 6, y + 4, time_text(std::pow(10, decade)), "end", 11);
  }
  to << R"(<polyline fill="none" stroke="#1a5fb4" stroke-width="2.5" points=")";
  for (const auto& each : what.points) to << across(each.size) << ',' << up(each.seconds) << ' ';
  to << "\"/>\n";
  for (const auto& each : what.points) {
    to << "<circle r=\"3.5\" fill=\"#1a5fb4\" cx=\"" << across(each.size) << "\" cy=\"" << up(each.seconds) << "\"/>\n";
    text(to, across(each.size), top + height + 16, size_text(each.size), "middle", 11);
  }
}

}  // namespace

std::string to_svg(const std::vector<series>& all, const std::string& machine) {
  const auto rows = (all.size() + columns - 1) / columns;
  const double whole_width = gap + columns * (width + gap);
  const double whole_height = gap + static_cast<double>(rows) * (height + gap);
  std::ostringstream to;
  to << std::fixed << std::setprecision(1) << R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" << whole_width
     << "\" height=\"" << whole_height << R"(" font-family="sans-serif" fill="#202020">)" << '\n'
     << R"(<rect width="100%" height="100%" fill="#ffffff"/>)" << '\n';
  text(to, gap, 26, "How times grow with n (" + machine + ")", "start", 15);
  for (std::size_t index = 0; index < all.size(); ++index) {
    panel(to, all[index], gap + static_cast<double>(index % columns) * (width + gap),
          gap + static_cast<double>(index / columns) * (height + gap));
  }
  to << "</svg>\n";
  return std::move(to).str();
}

}  // namespace growth
