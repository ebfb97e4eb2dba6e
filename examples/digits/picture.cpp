// SPDX-License-Identifier: BSL-1.0
#include "picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace digits {

namespace {

constexpr double width = 830;
constexpr double left_edge = 70;
constexpr double right_edge = 640;
constexpr double top = 50;
constexpr double bottom = 370;

void text(std::ostream& to, double x, double y, const std::string& what, const char* anchor, int size = 13) {
  to << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\" font-size=\"" << size << "\">"
     << what << "</text>\n";
}

void line(std::ostream& to, double x1, double y1, double x2, double y2, const std::string& style) {
  to << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" " << style << "/>\n";
}

// ---- the curves: losses are drawn by their logarithms

class chart {
public:
  explicit chart(const std::vector<curve>& curves) {
    double least = most_loss;
    double most = least_loss;
    for (const auto& each : curves) {
      for (const auto& point : each.points) {
        last_step_ = std::max(last_step_, point.step);
        least = std::min(least, within_bounds(point.loss));
        most = std::max(most, within_bounds(point.loss));
      }
    }
    constexpr double margin = 0.05;
    lowest_ = std::log10(least) - margin;
    highest_ = std::log10(most) + margin;
  }

  void draw(std::ostream& to, const std::vector<curve>& curves) const {
    axes(to);
    double y = top + 20;
    for (std::size_t index = 0; index < curves.size(); ++index, y += 22) {
      draw(to, curves[index], style_of(index));
      line(to, right_edge + 20, y - 4, right_edge + 55, y - 4, style_of(index));
      text(to, right_edge + 62, y, curves[index].name, "start");
    }
  }

private:
  static std::string style_of(std::size_t index) {
    constexpr std::array<const char*, 3> colours{"#1a5fb4", "#b3261e", "#26783c"};
    constexpr std::array<const char*, 3> dashes{"", R"( stroke-dasharray="8 6")", R"( stroke-dasharray="2 5")"};
    return std::string("stroke-width=\"2\" stroke=\"") + colours[index % colours.size()] + '"' +
           dashes[index % dashes.size()];
  }

  [[nodiscard]] double across(double step) const { return left_edge + (right_edge - left_edge) * step / last_step_; }
  [[nodiscard]] double up(double loss) const {
    return bottom - (bottom - top) * (std::log10(within_bounds(loss)) - lowest_) / (highest_ - lowest_);
  }
  // What is not a number is below all.
  static double within_bounds(double loss) { return loss > least_loss ? std::min(loss, most_loss) : least_loss; }

  void level(std::ostream& to, double loss) const {
    if (std::log10(loss) < lowest_ || std::log10(loss) > highest_) return;
    line(to, left_edge, up(loss), right_edge, up(loss), R"(stroke="#d0d0d0")");
    text(to, left_edge - 8, up(loss) + 4, label(loss), "end");
  }

  void axes(std::ostream& to) const {
    for (int power = static_cast<int>(std::floor(lowest_)); power <= highest_; ++power) {
      for (const int first : {1, 2, 5}) level(to, first * std::pow(10.0, power));
    }
    for (int part = 0; part <= 4; ++part) {
      const double step = std::round(last_step_ * part / 4);
      line(to, across(step), bottom, across(step), bottom + 5, R"(stroke="#404040")");
      text(to, across(step), bottom + 20, std::to_string(static_cast<long>(step)), "middle");
    }
    line(to, left_edge, bottom, right_edge, bottom, R"(stroke="#404040")");
    line(to, left_edge, top, left_edge, bottom, R"(stroke="#404040")");
    text(to, (left_edge + right_edge) / 2, bottom + 42, "step", "middle", 14);
    to << "<text transform=\"translate(18," << (top + bottom) / 2
       << ") rotate(-90)\" text-anchor=\"middle\" font-size=\"14\">loss</text>\n";
  }

  static std::string label(double value) {
    std::ostringstream made;
    made << value;
    return std::move(made).str();
  }

  void draw(std::ostream& to, const curve& which, const std::string& style) const {
    to << "<polyline fill=\"none\" " << style << " points=\"";
    for (const auto& each : which.points) to << across(each.step) << ',' << up(each.loss) << ' ';
    to << "\"/>\n";
  }

  static constexpr double least_loss = 1e-6;
  static constexpr double most_loss = 1e6;

  double last_step_ = 1;
  double lowest_ = 0;  // the powers of ten at the ends of the axis
  double highest_ = 1;
};

// ---- the page of mistakes

constexpr double dot = 8;
constexpr double cell_width = 86;
constexpr double cell_height = 106;
constexpr std::size_t columns = 9;
constexpr double page_left = (width - cell_width * columns) / 2;
constexpr double page_top = 480;

struct cell {
  double column = 0;
  double row = 0;
};

cell place_of(std::size_t index, std::size_t columns_of_page) {
  const auto row = index / columns_of_page;
  return {.column = static_cast<double>(index - row * columns_of_page), .row = static_cast<double>(row)};
}

std::vector<std::size_t> mistakes(const samples& on, const muster::tensor& guesses) {
  std::vector<std::size_t> found;
  for (std::size_t row = 0; row < guesses.size(); ++row) {
    if (guesses.at<std::int32_t>(row) != on.labels.at<std::int32_t>(row)) found.push_back(row);
  }
  return found;
}

void draw_image(std::ostream& to, double x, double y, const muster::tensor& image) {
  const auto ink = image.span<const float>();
  for (std::size_t each = 0; each < ink.size(); ++each) {
    const auto grey = std::to_string(std::lround(255 * (1 - ink[each])));
    const auto at = place_of(each, side);
    to << "<rect x=\"" << x + dot * at.column << "\" y=\"" << y + dot * at.row << "\" width=\"" << dot << "\" height=\""
       << dot << "\" fill=\"rgb(" << grey << ',' << grey << ',' << grey << ")\"/>\n";
  }
  to << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << dot * side << "\" height=\"" << dot * side
     << R"(" fill="none" stroke="#808080"/>)" << '\n';
}

void draw_page(std::ostream& to, const std::vector<std::size_t>& which, const samples& on,
               const muster::tensor& guesses) {
  const auto heading = std::to_string(which.size()) + " of " + std::to_string(guesses.size()) +
                       " test images were taken for another digit";
  text(to, width / 2, page_top - 26, heading, "middle", 15);
  for (std::size_t index = 0; index < which.size(); ++index) {
    const auto at = place_of(index, columns);
    const double x = page_left + cell_width * at.column + (cell_width - dot * side) / 2;
    const double y = page_top + cell_height * at.row;
    draw_image(to, x, y, on.images.row(which[index]));
    const auto of = [&](const muster::tensor& labels) { return std::to_string(labels.at<std::int32_t>(which[index])); };
    text(to, x + dot * side / 2, y + dot * side + 18, of(on.labels) + " taken for " + of(guesses), "middle", 12);
  }
}

}  // namespace

std::string picture_of(const std::string& title, const std::vector<curve>& curves, const samples& on,
                       const muster::tensor& guesses) {
  const auto wrong = mistakes(on, guesses);
  const double lines = place_of(wrong.size() + columns - 1, columns).row;
  const double height = guesses.size() == 0 ? page_top - 50 : page_top + cell_height * lines;
  std::ostringstream to;
  to << std::fixed << std::setprecision(1) << R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" << width
     << "\" height=\"" << height << "\" viewBox=\"0 0 " << width << ' ' << height
     << R"(" font-family="sans-serif" fill="#202020">)" << "\n<rect width=\"" << width << "\" height=\"" << height
     << R"(" fill="#ffffff"/>)" << '\n';
  text(to, (left_edge + right_edge) / 2, 26, title, "middle", 15);
  chart(curves).draw(to, curves);
  if (guesses.size() > 0) draw_page(to, wrong, on, guesses);
  to << "</svg>\n";
  return std::move(to).str();
}

void write_file(const std::string& name, const std::string& content) {
  std::ofstream out(name, std::ios::binary);
  out << content;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + name + "; is its directory there, writable and not full?");
}

}  // namespace digits
