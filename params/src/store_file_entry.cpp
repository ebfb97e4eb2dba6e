// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/store_file_entry.hpp>

#include <algorithm>
#include <array>
#include <charconv>

#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::string_view digits = "0123456789abcdef";

std::string hex_of(std::string_view bytes) {
  std::string made;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    made += {digits[byte >> 4U], digits[byte & 15U]};
  }
  return made;
}

std::optional<std::string> bytes_of(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string made;
  for (std::size_t at = 0; at < hex.size(); at += 2) {
    const auto high = digits.find(hex[at]);
    const auto low = digits.find(hex[at + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    made += static_cast<char>(high << 4U | low);
  }
  return made;
}

bool is_printable(char each) { return each >= ' ' && each <= '~'; }

// What cannot be printed becomes %XX, as in addresses.
std::string printable(std::string_view text) {
  std::string made;
  for (const char each : text) {
    if (is_printable(each)) {
      made += each;
    } else {
      made += '%' + hex_of({&each, 1});
    }
  }
  return made;
}

template <class Number>
bool read_number(std::string_view text, Number& to, int base = 10) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), to, base);
  return failure == std::errc() && end == text.data() + text.size();
}

// Takes one field off the line.
std::string_view take_field(std::string_view& line) {
  const auto length = std::min(line.find(' '), line.size());
  const auto field = line.substr(0, length);
  line.remove_prefix(std::min(length + 1, line.size()));
  return field;
}

bool read_key(std::string_view value, store_file_entry& to) {
  std::int64_t number = 0;
  if (!read_number(value, number)) return false;
  to.key = number;
  return true;
}

bool read_text(std::string_view value, store_file_entry& to) {
  const auto found = bytes_of(value);
  if (!found) return false;
  to.key = store_key(*found);
  return true;
}

// A field that is not known is another version's of the library.
bool read_field(std::string_view name, std::string_view value, store_file_entry& to) {
  if (name == "version") return read_number(value, to.version) && to.version <= store_file_entry::most_version;
  if (name == "number") return read_key(value, to);
  if (name == "text") return read_text(value, to);
  if (name == "type") return read_number(value, to.type.emplace(), 16);
  if (name == "state") return read_number(value, to.state.emplace());
  if (name == "step") return read_number(value, to.step) && to.step <= store_file_entry::most_version;
  if (name == "rule") to.rule = value;
  return true;
}

}  // namespace

std::string store_file_entry::name() const {
  const auto own = key.is_number() ? std::to_string(key.number()) : printable(key.text());
  return state ? text(own, ".state", *state) : own;
}

std::string store_file_entry::fields(std::string_view name) const {
  std::string line = text("version=", version);
  if (key.is_number()) {
    line += text(" number=", key.number());
  } else if (key.text() != name) {
    line += " text=" + hex_of(key.text());
  }
  if (type) {
    std::array<char, 16> room{};
    const auto end = std::to_chars(room.data(), room.data() + room.size(), *type, 16).ptr;
    line += " type=" + std::string(room.data(), end);
  }
  if (state) line += text(" state=", *state);
  if (!rule.empty()) line += text(" rule=", rule, " step=", step);
  return line;
}

std::optional<store_file_entry> store_file_entry::parse(std::string_view name, std::string_view fields) {
  store_file_entry made{.key = store_key(name)};
  while (!fields.empty()) {
    const auto field = take_field(fields);
    const auto middle = field.find('=');
    if (middle == std::string_view::npos) return std::nullopt;
    if (!read_field(field.substr(0, middle), field.substr(middle + 1), made)) return std::nullopt;
  }
  if (made.key.text().size() > store_key::most_bytes) return std::nullopt;
  return made;
}

}  // namespace muster::detail
