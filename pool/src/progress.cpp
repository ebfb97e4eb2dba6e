// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/progress.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <new>
#include <utility>

#include <muster/base/text.hpp>
#include <muster/pool/detail/pool_core.hpp>

namespace muster::detail {

namespace {

constexpr std::size_t usual_width = 80;
constexpr std::size_t least_bar = 10;

// 0:07, 12:34, 3:05:09.
std::string text_of_time(double seconds) {
  constexpr double longest = 360'000'000;  // beyond that nobody counts in hours
  const auto whole = std::llround(std::min(std::max(seconds, 0.0), longest));
  std::array<char, 40> room{};
  const auto hours = whole / 3600;
  const auto minutes = static_cast<int>(whole / 60 % 60);
  const auto rest = static_cast<int>(whole % 60);
  if (hours > 0) {
    std::snprintf(room.data(), room.size(), "%lld:%02d:%02d", hours, minutes, rest);
  } else {
    std::snprintf(room.data(), room.size(), "%d:%02d", minutes, rest);
  }
  return room.data();
}

// Three digits are enough: 0.123/s, 45.6/s, 789/s, 12.3k/s, 4.56M/s.
std::string text_of_rate(double per_second) {
  constexpr std::array units = {"", "k", "M", "G"};
  std::size_t unit = 0;
  while (per_second >= 999.5 && unit + 1 < units.size()) {
    per_second /= 1000;
    ++unit;
  }
  const int digits = per_second >= 99.95 ? 0 : per_second >= 9.995 ? 1 : per_second >= 1 || unit > 0 ? 2 : 3;
  std::array<char, 64> room{};
  std::snprintf(room.data(), room.size(), "%.*f%s/s", digits, per_second, units[unit]);
  return room.data();
}

std::string bar_of(double share, std::size_t columns) {
  const auto inside = columns - 2;
  const auto full = std::min(inside, static_cast<std::size_t>(share * static_cast<double>(inside)));
  return '[' + std::string(full, '#') + std::string(inside - full, ' ') + ']';
}

std::size_t width_of(int descriptor) noexcept {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return usual_width;
  return size.ws_col - 1U;  // in the last column some terminals go on to the next line
}

// Without what a terminal would obey.
std::string printable(std::string label) {
  std::replace_if(label.begin(), label.end(), [](unsigned char each) { return each < 0x20 || each == 0x7f; }, '?');
  return label;
}

// It is only for people to look at: what cannot be written is not.
void write_line(int descriptor, const std::string& bytes) noexcept {
  static_cast<void>(!::write(descriptor, bytes.data(), bytes.size()));
}

}  // namespace

std::string progress_text(const progress_state& state, std::size_t width) {
  const double seconds = std::chrono::duration<double>(state.elapsed).count();
  const double rate = seconds > 0 ? static_cast<double>(state.done) / seconds : 0;
  const bool has_share = state.total && *state.total > 0;
  const double share =
      has_share ? std::min(1.0, static_cast<double>(state.done) / static_cast<double>(*state.total)) : 0;

  auto line = std::to_string(state.done);
  if (state.total) line += '/' + std::to_string(*state.total);
  const auto room_for = [&](std::size_t columns) { return line.size() + columns <= width; };
  const auto add_behind = [&](const std::string& part) {
    if (room_for(part.size() + 1)) line += ' ' + part;
  };
  if (has_share) add_behind(std::to_string(static_cast<int>(share * 100)) + '%');
  std::string after;
  if (state.done > 0 && seconds > 0) {
    after = ' ' + text_of_rate(rate);
    if (!room_for(after.size())) after.clear();
    const auto remaining = !state.total ? text_of_time(seconds)
                           : state.done < *state.total
                               ? text_of_time(static_cast<double>(*state.total - state.done) / rate) + " left"
                               : "in " + text_of_time(seconds);
    if (room_for(after.size() + remaining.size() + 1)) after += ' ' + remaining;
  }
  std::string before;
  if (!state.label.empty() && room_for(after.size() + state.label.size() + 2)) before = state.label + ": ";
  const auto used = before.size() + line.size() + after.size() + 1;
  if (has_share && width >= used + least_bar) line += ' ' + bar_of(share, std::min<std::size_t>(width - used, 40));
  return (before + line + after).substr(0, width);
}

progress_meter::progress_meter(std::string label, std::optional<std::size_t> total)
    : progress_meter(std::move(label), total, settings()) {}

progress_meter::progress_meter(std::string label, std::optional<std::size_t> total, const settings& how)
    : label_(printable(std::move(label))),
      total_(total),
      settings_(how),
      terminal_(::isatty(how.descriptor) == 1),
      due_((start_ + (terminal_ ? how.redraw : how.plain)).time_since_epoch().count()) {}

void progress_meter::show() {
  if (clock::now() < due() || !mutex_.try_lock()) return;
  if (!finished_ && clock::now() >= due()) draw();
  mutex_.unlock();
}

void progress_meter::finish() noexcept {
  try {
    const scoped_lock lock(mutex_);
    if (std::exchange(finished_, true) || !drawn_) return;
    draw();
    if (terminal_) write_line(settings_.descriptor, "\n");
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): then the last line is missing
  }
}

void progress_meter::draw() {
  const auto now = clock::now();
  const progress_state state{
      .label = label_, .done = done_.load(std::memory_order_relaxed), .total = total_, .elapsed = now - start_};
  if (terminal_) {
    write_line(settings_.descriptor, '\r' + progress_text(state, width_of(settings_.descriptor)) + "\x1b[K");
  } else {
    write_line(settings_.descriptor, progress_text(state, usual_width) + '\n');
  }
  drawn_ = true;
  set_due(now + (terminal_ ? settings_.redraw : settings_.plain));
}

bool wait_showing(pool_core& core, const std::atomic<std::uint32_t>& done, deadline until, progress_meter* meter) {
  if (meter == nullptr) return core.wait_helping(done, until);
  for (;;) {
    if (core.wait_helping(done, deadline(std::min(until.when(), meter->due())))) {
      meter->finish_if_complete();
      return true;
    }
    meter->show();
    if (until.expired()) return false;
  }
}

}  // namespace muster::detail
