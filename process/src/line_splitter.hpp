// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include <muster/process/worker_output.hpp>

namespace muster::detail {

/// Makes lines of bytes that come in any pieces; holds at most longest_output_line of them.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class line_splitter {
public:
  /// Calls `each(text, ends_line)` for every line that is complete now, and for full pieces of over-long ones.
  template <class F>
  void add(std::string_view bytes, F each) {
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      const auto room = longest_output_line - rest_.size();
      const auto length = std::min({end, room, bytes.size()});
      rest_ += bytes.substr(0, length);
      bytes.remove_prefix(length);
      if (!bytes.empty() && bytes.front() == '\n') {
        bytes.remove_prefix(1);
        each(std::string_view(rest_), true);
        rest_.clear();
      } else if (rest_.size() == longest_output_line && !bytes.empty()) {  // a line feed may still be its end
        each(std::string_view(rest_), false);
        rest_.clear();
      }
    }
  }

  /// The same for what is left.
  template <class F>
  void finish(F each) {
    if (!rest_.empty()) each(std::string_view(rest_), false);
    rest_.clear();
  }

private:
  std::string rest_;
};

/// The last lines that somebody wrote: no more than are worth being read by a person.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class last_lines {
public:
  static constexpr std::size_t most_lines = 20;
  static constexpr std::size_t most_bytes = 4096;  // with their line feeds

  void add(std::string_view line) {
    std::string kept(line.substr(0, most_bytes - 1));
    std::replace(kept.begin(), kept.end(), '\0', '?');  // it is to be part of a what()
    bytes_ += kept.size() + 1;
    lines_.push_back(std::move(kept));
    while (lines_.size() > most_lines || bytes_ > most_bytes) {
      bytes_ -= lines_.front().size() + 1;
      lines_.pop_front();
    }
  }

  /// All of them, each with its line feed; none are left then.
  [[nodiscard]] std::string take() {
    std::string all;
    all.reserve(bytes_);
    for (const auto& line : lines_) all.append(line).append("\n");
    lines_.clear();
    bytes_ = 0;
    return all;
  }

private:
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
};

}  // namespace muster::detail
