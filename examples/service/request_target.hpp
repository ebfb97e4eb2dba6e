// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace service {

/// The request is wrong: says what was given and what was expected. Answered with 400.
class bad_request : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The target of a request, taken apart and decoded: `/hash?path=%2Fetc%2Fpasswd`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class request_target {
public:
  /// Throws bad_request when it is not one.
  explicit request_target(std::string_view text);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Throws bad_request when it is missing or empty, with `expected` as what it should be.
  [[nodiscard]] const std::string& parameter(std::string_view name, std::string_view expected) const;
  /// The same, a whole number from 0 to `most`.
  [[nodiscard]] unsigned number(std::string_view name, unsigned most) const;

private:
  std::string path_;
  std::map<std::string, std::string, std::less<>> parameters_;  // of several with one name, the first
};

}  // namespace service
