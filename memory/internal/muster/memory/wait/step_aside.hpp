// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <muster/base/clock.hpp>
#include <muster/memory/detail/wait/contention.hpp>
#include <muster/memory/detail/wait/place.hpp>

namespace muster {

/// Whether a worker that shares its processor with its caller may move: of `processors`, each other worker that is
/// awake has one. Where none is left it would move onto another worker. `sleeping`: how many of the `workers` sleep,
/// roughly.
[[nodiscard]] constexpr bool is_room_aside(std::size_t workers, std::size_t sleeping, std::size_t processors) noexcept {
  const std::size_t awake = workers - std::min(sleeping, workers);  // this one too
  return awake < processors;
}

/// Moves the calling thread off a processor that it keeps meeting its partner on.
///
/// A thread that is woken is put where its waker runs, if the kernel finds the others no better; then the two take
/// turns on one processor, and each answer costs two wake-ups. So a worker that has met its partner `patience` times in
/// a row takes that processor out of the ones where it may run, whereupon the kernel moves it at once, and puts it
/// back. Not again before a pause has passed, which doubles each time that moving has not kept them apart: where all
/// processors are busy, it does not help.
///
/// For threads of the library only: where a program's thread may run is the program's business.
/// Thread safety: an object belongs to one thread.
/// Source: ../shared/prototypes/wait/many.cpp (`move`).
class step_aside {
public:
  /// By a thread that has waited for its partner, or worked for it: where that is to run. `own` tells others where this
  /// thread is to run, already while it moves; `is_partner_awake`: it has what it needs to go on, as far as is known.
  /// Under contention nothing is done: there is no better place. Cost: a count; two or three system calls when it
  /// moves.
  void note(place_word& own, prospect of_partner, bool is_partner_awake) noexcept {
    if (contention::of_this_thread().is_on()) return;
    of_partner == prospect::futile ? meet(own, is_partner_awake) : pass();
  }

  /// Whether it has moved the thread so often, for tests.
  [[nodiscard]] unsigned moves() const noexcept { return moves_; }

private:
  void meet(place_word& own, bool is_partner_awake) noexcept;
  [[nodiscard]] bool has_room(clock::time_point now, bool is_partner_awake) noexcept;
  void pass() noexcept {
    met_ = 0;
    ++apart_;
  }

  static constexpr unsigned patience = 4;
  static constexpr std::uint64_t enough = 64;  // times that they were apart: then the move was worth its price
  static constexpr std::chrono::nanoseconds shortest_pause = std::chrono::milliseconds(1);
  static constexpr std::chrono::nanoseconds longest_pause = std::chrono::seconds(1);

  unsigned met_ = 0;
  unsigned moves_ = 0;
  std::uint64_t apart_ = enough;  // since the last move
  clock::time_point last_{};
  clock::time_point asked_{};  // whether a processor is idle
  std::chrono::nanoseconds pause_ = shortest_pause;
};

}  // namespace muster
