// SPDX-License-Identifier: BSL-1.0
#include "picture.hpp"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>

namespace frames {

namespace {

constexpr std::size_t longest_side = 20'000;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw std::runtime_error(path.string() + ": " + why);
}

[[noreturn]] void fail_with_errno(const std::filesystem::path& path) {
  fail(path, std::generic_category().message(errno));
}

// The next number of a header, in which comments may stand.
std::size_t read_number(std::istream& in, const std::filesystem::path& path) {
  while (in >> std::ws && in.peek() == '#') in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  std::size_t number = 0;
  if (!(in >> number)) fail(path, "a number was expected in the header: width, height and 255");
  return number;
}

struct picture_header {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t channels = 0;
};

picture_header read_header(std::istream& in, const std::filesystem::path& path) {
  std::array<char, 2> kind{};
  in.read(kind.data(), kind.size());
  if (!in || kind[0] != 'P' || (kind[1] != '5' && kind[1] != '6')) {
    fail(path, "this is no binary PPM or PGM file: it must begin with P6 or P5");
  }
  picture_header found{.channels = kind[1] == '6' ? 3U : 1U};
  found.columns = read_number(in, path);
  found.rows = read_number(in, path);
  const auto brightest = read_number(in, path);
  if (found.columns == 0 || found.rows == 0 || found.columns > longest_side || found.rows > longest_side) {
    fail(path, std::to_string(found.columns) + " by " + std::to_string(found.rows) +
                   " pixels: each side must have 1 to " + std::to_string(longest_side));
  }
  if (brightest != 255) fail(path, "its brightest value is " + std::to_string(brightest) + "; only 255 can be read");
  in.ignore(1);
  return found;
}

// From one value a pixel to three, from the end on, so that nothing is overwritten before it is read.
void spread_gray(std::uint8_t* values, std::size_t pixels) {
  for (auto at = pixels; at-- > 0;) values[3 * at] = values[3 * at + 1] = values[3 * at + 2] = values[at];
}

// In a few steps, so that there are edges to see.
std::uint8_t shade(double value) {
  constexpr double steps = 2;
  return static_cast<std::uint8_t>(std::lround(127.5 + 127.5 * std::round(value * steps) / steps));
}

}  // namespace

muster::tensor read_picture(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail_with_errno(path);
  const auto head = read_header(in, path);
  auto picture = muster::tensor::empty<std::uint8_t>({head.rows, head.columns, 3});
  const auto expected = head.rows * head.columns * head.channels;
  in.read(reinterpret_cast<char*>(picture.data()), static_cast<std::streamsize>(expected));
  const auto got = static_cast<std::size_t>(in.gcount());
  if (got != expected) {
    fail(path, "it ends after " + std::to_string(got) + " of " + std::to_string(expected) + " bytes of pixels");
  }
  if (head.channels == 1) spread_gray(picture.data<std::uint8_t>(), head.rows * head.columns);
  return picture;
}

void write_picture(const std::filesystem::path& path, const muster::tensor& picture) {
  std::ofstream out(path, std::ios::binary);
  out << "P6\n" << picture.shape()[1] << ' ' << picture.shape()[0] << "\n255\n";
  out.write(reinterpret_cast<const char*>(picture.data()), static_cast<std::streamsize>(picture.nbytes()));
  out.close();
  if (!out) fail_with_errno(path);
}

muster::tensor render_picture(std::size_t rows, std::size_t columns) {
  auto picture = muster::tensor::empty<std::uint8_t>({rows, columns, 3});
  auto* next = picture.data<std::uint8_t>();
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const auto x = static_cast<double>(column) / static_cast<double>(columns) - 0.5;
      const auto y = static_cast<double>(row) / static_cast<double>(rows) - 0.5;
      const auto distance = std::hypot(x, y);
      *next++ = shade(std::sin(40 * distance));
      *next++ = shade(std::sin(12 * x + 6 * std::sin(7 * y)));
      *next++ = shade(std::cos(9 * y - 20 * distance));
    }
  }
  return picture;
}

}  // namespace frames
