// SPDX-License-Identifier: BSL-1.0
// The chart of bench_scaling, as SVG.
#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <set>
#include <sstream>

#include "scaling_report.hpp"

namespace scaling {

namespace {

constexpr double left = 70;
constexpr double right = 580;
constexpr double top = 50;
constexpr double bottom = 370;
constexpr double most_workers = 256;

double across(std::size_t workers) {
  return left + (right - left) * std::log2(static_cast<double>(workers)) / std::log2(most_workers);
}
double up(double share) { return bottom - (bottom - top) * std::clamp(share, 0.0, 1.0); }

constexpr std::array<const char*, 4> colours{"#b3261e", "#1a5fb4", "#26783c", "#7a4fa3"};

void text(std::ostream& to, double x, double y, const std::string& what, const char* anchor, int size = 13) {
  to << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\" font-size=\"" << size << "\">"
     << what << "</text>\n";
}

void line(std::ostream& to, double x1, double y1, double x2, double y2, const std::string& style) {
  to << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" " << style << "/>\n";
}

void axes(std::ostream& to, const std::set<std::size_t>& workers) {
  for (int percent = 0; percent <= 100; percent += 20) {
    line(to, left, up(percent / 100.0), right, up(percent / 100.0), R"(stroke="#d0d0d0")");
    text(to, left - 8, up(percent / 100.0) + 4, std::to_string(percent) + " %", "end");
  }
  for (const auto each : workers) {
    line(to, across(each), bottom, across(each), bottom + 5, R"(stroke="#404040")");
    text(to, across(each), bottom + 20, std::to_string(each), "middle");
  }
  line(to, left, bottom, right, bottom, R"(stroke="#404040")");
  line(to, left, top, left, bottom, R"(stroke="#404040")");
  text(to, (left + right) / 2, bottom + 42, "workers", "middle", 14);
  to << "<text transform=\"translate(18," << (top + bottom) / 2
     << ") rotate(-90)\" text-anchor=\"middle\" font-size=\"14\">throughput, share of the ideal</text>\n";
}

std::string style_of(std::size_t series, bool dashed) {
  std::string style = std::string("stroke=\"") + colours[series % colours.size()] + "\" stroke-width=\"2.5\"";
  if (dashed) style += R"( stroke-dasharray="7 5")";
  return style;
}

struct series {
  std::string name;
  nanoseconds length{0};
  bool dashed = false;
};

void curve(std::ostream& to, const std::vector<row>& rows, const series& which, std::size_t index) {
  to << "<polyline fill=\"none\" " << style_of(index, which.dashed) << " points=\"";
  std::ostringstream dots;
  dots << std::fixed << std::setprecision(1);
  for (const auto& each : rows) {
    if (each.part != "dispatch" || each.name != which.name || each.what.length != which.length) continue;
    to << across(each.what.workers) << ',' << up(share_of_ideal(each)) << ' ';
    dots << "<circle r=\"3.5\" fill=\"" << colours[index % colours.size()] << "\" cx=\"" << across(each.what.workers)
         << "\" cy=\"" << up(share_of_ideal(each)) << "\"/>\n";
  }
  to << "\"/>\n" << dots.str();
}

}  // namespace

std::string to_svg(const std::vector<row>& rows, const std::string& plain, const std::string& better) {
  std::set<std::size_t> workers;
  std::set<nanoseconds> lengths;
  for (const auto& each : rows) {
    if (each.part != "dispatch") continue;
    workers.insert(each.what.workers);
    if (each.what.length.count() > 0) lengths.insert(each.what.length);
  }
  std::ostringstream to;
  to << std::fixed << std::setprecision(1)
     << R"(<svg xmlns="http://www.w3.org/2000/svg" width="830" height="430" viewBox="0 0 830 430" )"
     << R"(font-family="sans-serif" fill="#202020">)" << '\n'
     << R"(<rect width="830" height="430" fill="#ffffff"/>)" << '\n';
  text(to, (left + right) / 2, 26, "Simulated throughput of one submitting thread and its workers", "middle", 15);
  axes(to, workers);
  std::size_t index = 0;
  double y = top + 20;
  for (const auto length : lengths) {
    for (const bool dashed : {false, true}) {
      const auto& name = dashed ? better : plain;
      curve(to, rows, {.name = name, .length = length, .dashed = dashed}, index);
      line(to, right + 20, y - 4, right + 55, y - 4, style_of(index, dashed));
      text(to, right + 62, y, std::to_string(length.count() / 1000) + " \u00b5s, " + name, "start");
      y += 22;
    }
    ++index;
  }
  to << "</svg>\n";
  return to.str();
}

}  // namespace scaling
