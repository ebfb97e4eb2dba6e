// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <type_traits>

#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/float_state.hpp>

namespace muster {

/// The clock of all deadlines: monotonic, not set by anybody.
using clock = std::chrono::steady_clock;

/// So much later than `from`; the end of all time, and its beginning, for what is further away than the clock can say.
[[nodiscard]] constexpr clock::time_point later(clock::time_point from, std::chrono::nanoseconds by) noexcept {
  if (by.count() > 0 && from > clock::time_point::max() - by) return clock::time_point::max();
  if (by.count() < 0 && from < clock::time_point::min() - by) return clock::time_point::min();
  return from + by;
}

/// A point in time after which waiting ends; `deadline()` and `deadline::never()` are infinitely far.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class deadline {
public:
  constexpr deadline() noexcept = default;
  /// Points before the clock's start are that start: the kernel refuses earlier ones.
  constexpr explicit deadline(clock::time_point when) noexcept
      : when_(when < clock::time_point() ? clock::time_point() : when) {}

  /// Returns a deadline that never passes, as a default-constructed one.
  [[nodiscard]] static constexpr deadline never() noexcept { return {}; }

  /// `wait` from now on; durations too long for the clock never end, negative ones, and NaN, ended already.
  template <class Rep, class Period>
  [[nodiscard]] static deadline after(std::chrono::duration<Rep, Period> wait) {
    const auto now = clock::now();
    if constexpr (std::is_same_v<std::chrono::duration<Rep, Period>, clock::duration>) {
      return deadline(later(now, wait < clock::duration::zero() ? clock::duration::zero() : wait));
    } else {
      return in_fixed_float_state([&] { return after(now, wait); });
    }
  }

  /// Returns whether this deadline never passes: as never(), or with the clock's last instant.
  [[nodiscard]] constexpr bool is_never() const noexcept { return when_ == clock::time_point::max(); }
  /// Returns whether the clock has reached this deadline; false for never(). Cost: a reading of the clock, unless the
  /// deadline never passes.
  [[nodiscard]] bool expired() const noexcept { return !is_never() && clock::now() >= when_; }
  /// Returns the instant; clock::time_point::max() for never().
  [[nodiscard]] constexpr clock::time_point when() const noexcept { return when_; }
  /// From now until then, but not more than `most`; not positive when it has expired. Cost: a reading of the clock,
  /// unless it never ends.
  [[nodiscard]] std::chrono::nanoseconds left(std::chrono::nanoseconds most) const noexcept {
    if (is_never()) return most;
    const std::chrono::nanoseconds until = when_ - clock::now();
    return until < most ? until : most;
  }

private:
  template <class Rep, class Period>
  [[nodiscard]] static deadline after(clock::time_point now, std::chrono::duration<Rep, Period> wait) {
    using seconds = std::chrono::duration<double>;
    if (!(seconds(wait) > seconds(0))) return deadline(now);  // also what is no number
    if (seconds(wait) >= seconds(clock::time_point::max() - now)) return never();
    return deadline(now + std::chrono::ceil<clock::duration>(wait));
  }

  clock::time_point when_ = clock::time_point::max();
};

}  // namespace muster
