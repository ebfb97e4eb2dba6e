// SPDX-License-Identifier: BSL-1.0
#include "request_target.hpp"

#include <charconv>

namespace service {

namespace {

// The byte that two hexadecimal digits stand for.
char decode_byte(std::string_view digits) {
  unsigned value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  const bool both = digits.size() == 2 && failure == std::errc() && end == digits.data() + 2;
  if (!both || value == 0) {
    throw bad_request("the target has '%" + std::string(digits) +
                      "': after % there must be two hexadecimal digits, and not 00; write %25 for the sign itself");
  }
  return static_cast<char>(value);
}

std::string decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded.push_back(text[at] == '+' ? ' ' : text[at]);
      continue;
    }
    decoded.push_back(decode_byte(text.substr(at + 1, 2)));
    at += 2;
  }
  return decoded;
}

// Cuts off what comes before `separator`, or everything.
std::string_view take_until(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const auto taken = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return taken;
}

}  // namespace

request_target::request_target(std::string_view text) {
  if (!text.starts_with('/')) throw bad_request("the target is '" + std::string(text) + "'; it must begin with /");
  path_ = take_until(text, '?');
  while (!text.empty()) {
    auto value = take_until(text, '&');
    const auto name = take_until(value, '=');
    parameters_.emplace(decode(name), decode(value));
  }
}

const std::string& request_target::parameter(std::string_view name, std::string_view expected) const {
  const auto found = parameters_.find(name);
  if (found == parameters_.end() || found->second.empty()) {
    throw bad_request("the parameter '" + std::string(name) + "' is missing or empty; expected: " + path_ + '?' +
                      std::string(name) + '=' + std::string(expected));
  }
  return found->second;
}

unsigned request_target::number(std::string_view name, unsigned most) const {
  const auto expected = "a whole number from 0 to " + std::to_string(most);
  const auto& text = parameter(name, expected);
  unsigned value = 0;
  const auto* const last = text.data() + text.size();
  const auto [end, failure] = std::from_chars(text.data(), last, value);
  if (failure != std::errc() || end != last || value > most)
    throw bad_request("the parameter '" + std::string(name) + "' is '" + text + "'; expected: " + expected);
  return value;
}

}  // namespace service
