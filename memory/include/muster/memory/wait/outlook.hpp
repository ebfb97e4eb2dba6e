// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <muster/base/clock.hpp>
#include <muster/memory/wait/idle_set.hpp>
#include <muster/memory/wait/place.hpp>

namespace muster {

/// For one who waits for a task that workers are to run: what can be expected of looking for its end.
///
/// A worker that was woken just now has not told where it is to run: who wakes it sets its place to 0. It may stand in
/// the queue of this very processor, so it is looked for only as long as it needs to come from another one.
///
/// Thread safety: an object belongs to one thread, and to one wait.
class outlook {
public:
  /// Where it is known whose move is the next.
  [[nodiscard]] prospect of(const place_word& next) noexcept {
    return next.load(std::memory_order_relaxed) == 0 ? of_the_woken() : prospect_of(next);
  }

  /// Where anybody may take the task: the worker that looks for tasks; or, where none does, those that are awake, of
  /// which a few are asked: it is futile where all of them are to run here. `place_of(worker)` is that worker's place.
  /// Cost: two loads, and one for each that is asked.
  template <class PlaceOf>
  [[nodiscard]] prospect of_any(const idle_set& looking, const idle_set& sleeping, std::size_t workers,
                                const PlaceOf& place_of) noexcept {
    if (const auto next = looking.peek_first(); next && *next < workers) return of(place_of(*next));
    bool has_one_here = false;
    auto found = prospect::futile;
    const bool is_any_elsewhere = ask_awake(sleeping, workers, [&](std::size_t worker) {
      const auto& place = place_of(worker);
      if (place.load(std::memory_order_relaxed) == 0) return false;
      found = prospect_of(place);
      has_one_here = has_one_here || found == prospect::futile;
      return found != prospect::futile;
    });
    return is_any_elsewhere || has_one_here ? found : of_the_woken();
  }

  /// For one who waits for many tasks: futile where one worker that is awake, of a few that are asked, is to run here.
  template <class PlaceOf>
  [[nodiscard]] static prospect of_many(const idle_set& sleeping, std::size_t workers,
                                        const PlaceOf& place_of) noexcept {
    const bool meets =
        ask_awake(sleeping, workers, [&](std::size_t worker) { return shares_processor(place_of(worker)); });
    return meets ? prospect::futile : prospect::usual;
  }

private:
  static constexpr auto to_come = std::chrono::microseconds(8);
  static constexpr int most_asked = 4;

  // Until one says yes.
  template <class Ask>
  static bool ask_awake(const idle_set& sleeping, std::size_t workers, const Ask& ask) noexcept {
    auto awake = ~sleeping.peek_first_64() & first(workers);
    for (int asked = 0; awake != 0 && asked < most_asked; ++asked, awake &= awake - 1) {
      if (ask(static_cast<std::size_t>(std::countr_zero(awake)))) return true;
    }
    return false;
  }

  [[nodiscard]] static constexpr std::uint64_t first(std::size_t workers) noexcept {
    return workers < 64 ? (std::uint64_t{1} << workers) - 1 : ~std::uint64_t{0};
  }

  [[nodiscard]] prospect of_the_woken() noexcept {
    if (!comes_until_) comes_until_ = deadline::after(to_come);
    return comes_until_->expired() ? prospect::futile : prospect::usual;
  }

  std::optional<deadline> comes_until_;
};

}  // namespace muster
