// SPDX-License-Identifier: BSL-1.0
#include "progress_bar.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <utility>

namespace progress {

namespace {

constexpr std::chrono::milliseconds redraw_interval{100};
constexpr std::chrono::seconds line_interval{10};

std::size_t terminal_width() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

progress_bar::progress_bar(std::string title, std::size_t total)
    : title_(std::move(title)), total_(total), on_terminal_(::isatty(STDERR_FILENO) == 1) {
  if (!on_terminal_) next_ += line_interval;
}

void progress_bar::clear() {
  if (on_terminal_) std::fputs("\r\033[K", stderr);
}

void progress_bar::advance() {
  ++done_;
  if (const auto now = clock::now(); now >= next_) draw(now);
}

std::string progress_bar::line(std::size_t width, clock::duration elapsed) const {
  const double seconds = std::max(1e-9, std::chrono::duration<double>(elapsed).count());
  const double rate = static_cast<double>(done_) / seconds;
  std::ostringstream numbers;
  numbers << ' ' << done_ << '/' << total_ << "  " << static_cast<std::size_t>(rate) << "/s  "
          << std::lround(static_cast<double>(total_ - done_) / rate) << " s left";
  const auto taken = title_.size() + numbers.str().size() + 4;
  if (taken + 10 > width) return title_ + numbers.str();
  const auto length = std::min<std::size_t>(width - taken, 60);
  const auto full = done_ * length / std::max<std::size_t>(total_, 1);
  return title_ + " [" + std::string(full, '=') + std::string(length - full, ' ') + ']' + numbers.str();
}

void progress_bar::draw(clock::time_point now) {
  const auto width = on_terminal_ ? terminal_width() : 60;
  const auto text = line(width, now - start_).substr(0, on_terminal_ ? width - 1 : std::string::npos);
  std::fprintf(stderr, on_terminal_ ? "\r%s\033[K" : "%s\n", text.c_str());
  next_ = now + (on_terminal_ ? std::chrono::nanoseconds(redraw_interval) : line_interval);
}

}  // namespace progress
