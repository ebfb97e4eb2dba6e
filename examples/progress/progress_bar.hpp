// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace progress {

/// How far a long work is. On a terminal a bar on stderr, as wide as fits, with rate and time left; elsewhere a line
/// every ten seconds.
class progress_bar {
public:
  progress_bar(std::string title, std::size_t total);
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  ~progress_bar() { clear(); }

  void advance();
  /// Removes the bar until it is drawn again: before something else is written to the terminal.
  void clear();

private:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] std::string line(std::size_t width, clock::duration elapsed) const;
  void draw(clock::time_point now);

  const std::string title_;
  const std::size_t total_;
  const bool on_terminal_;
  const clock::time_point start_ = clock::now();
  clock::time_point next_ = start_;
  std::size_t done_ = 0;
};

}  // namespace progress
