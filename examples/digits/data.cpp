// SPDX-License-Identifier: BSL-1.0
#include "data.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

namespace digits {

namespace {

using muster::tensor;

constexpr float most_ink = 16;

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw std::runtime_error(file + ": " + why);
}

std::string read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  std::ostringstream content;
  // Of a directory everything but the reading succeeds; an empty file gives nothing to insert, which is no fault.
  if (!in || (in.peek() != EOF && !(content << in.rdbuf())) || in.bad()) {
    refuse(name, "cannot be read: " + std::generic_category().message(errno));
  }
  return std::move(content).str();
}

bool is_packed(std::string_view content) { return content.starts_with("\x1f\x8b"); }

std::string as_one_word(const std::string& word) {
  std::string made = "'";
  for (const char each : word) each == '\'' ? made += R"('\'')" : made += each;
  return made + '\'';
}

std::string unpack(const std::string& file) {
  std::FILE* const pipe = ::popen(("exec gzip -dc < " + as_one_word(file)).c_str(), "r");
  if (pipe == nullptr) refuse(file, "gzip, which unpacks it, could not be started");
  std::string content;
  std::vector<char> some(std::size_t{1} << 16U);
  while (const auto size = std::fread(some.data(), 1, some.size(), pipe)) content.append(some.data(), size);
  if (::pclose(pipe) != 0) refuse(file, "gzip could not unpack it; what it said stands above");
  return content;
}

// One line of the file, as numbers.
class line_reader {
public:
  line_reader(const std::string& file, std::size_t line) : file_(file), line_(line) {}

  void read(std::string_view text, std::vector<float>& images, std::vector<std::int32_t>& labels) const {
    const auto fields = 1 + static_cast<std::size_t>(std::ranges::count(text, ','));
    if (fields != pixels + 1) {
      refuse_line("expected 64 pixels and a label, which are 65 numbers with commas between; found " +
                  std::to_string(fields) + (fields == 1 ? " field" : " fields"));
    }
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) images.push_back(next(text, pixel, most_ink) / most_ink);
    labels.push_back(static_cast<std::int32_t>(next(text, pixels, kinds - 1)));
  }

private:
  [[noreturn]] void refuse_line(const std::string& why) const { refuse(file_ + ":" + std::to_string(line_), why); }

  float next(std::string_view& text, std::size_t index, float most) const {
    const auto field = text.substr(0, text.find(','));
    text.remove_prefix(std::min(field.size() + 1, text.size()));
    float value = -1;
    const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool is_number = failure == std::errc() && end == field.data() + field.size();
    const bool is_whole = value == static_cast<float>(static_cast<int>(value));
    if (is_number && value >= 0 && value <= most && is_whole) return value;
    refuse_line((index < pixels ? "pixel " + std::to_string(index + 1) : "the label") + " is '" + std::string(field) +
                "'; expected a whole number from 0 to " + std::to_string(static_cast<int>(most)));
  }

  const std::string& file_;
  const std::size_t line_;
};

samples parse(const std::string& file, const std::string& content) {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::istringstream in(content);
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    line_reader(file, number).read(line, images, labels);
  }
  if (labels.size() < 2) {
    refuse(file, "expected a line for each image, and two of them at least; found " + std::to_string(labels.size()));
  }
  return {.images = tensor::from(images, {labels.size(), pixels}), .labels = tensor::from(labels)};
}

samples select(const samples& from, std::span<const std::size_t> which) {
  samples made{.images = tensor::empty<float>({which.size(), pixels}),
               .labels = tensor::empty<std::int32_t>({which.size()})};
  for (std::size_t row = 0; row < which.size(); ++row) {
    made.images.row(row).copy_from(from.images.row(which[row]));
    made.labels.at<std::int32_t>(row) = from.labels.at<std::int32_t>(which[row]);
  }
  return made;
}

}  // namespace

samples read_samples(const std::string& file) {
  auto content = read_file(file);
  if (is_packed(content)) content = unpack(file);
  return parse(file, content);
}

divided_samples divide(const samples& all, std::uint64_t seed) {
  std::vector<std::size_t> order(all.count());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::shuffle(order, std::mt19937_64(seed));
  const std::span<const std::size_t> every(order);
  const auto train = every.size() * 1500 / 1797;
  return {.train = select(all, every.first(train)), .test = select(all, every.subspan(train))};
}

}  // namespace digits
