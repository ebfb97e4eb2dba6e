// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace service {

/// What a client is told.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class answer {
public:
  answer(unsigned status, std::string text, std::string type = "text/plain; charset=utf-8")
      : status_(status), text_(std::move(text)), type_(std::move(type)) {}

  [[nodiscard]] unsigned status() const noexcept { return status_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const std::string& type() const noexcept { return type_; }

private:
  // No aggregate: GCC 12 destroys those twice when they are temporaries inside a co_await expression.
  unsigned status_;
  std::string text_;
  std::string type_;
};

/// Answers the target of a GET request; does not throw.
using handler = std::function<boost::asio::awaitable<answer>(std::string target)>;

}  // namespace service
