// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include <muster/base/clock.hpp>

namespace muster {

/// A time in which this process did not run, as far as it can know: it was stopped by a signal or a debugger, or the
/// machine had no time for it.
struct host_pause {
  clock::time_point seen;  ///< when it ran last, for certain
  clock::time_point due;   ///< when it was to run again
  clock::time_point end;   ///< when it did
};

/// The pauses of this process, and how much time they took from something that was running meanwhile.
///
/// The time from `due` to `end` was lost. Of the time from `seen` to `due` that is not known: it counts as lost too, so
/// that nothing is ended early, but for no more than the limit that is extended: where every look is late, limits pass
/// all the same.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Cost: of the last `most` pauses each is kept; earlier ones are kept together.
class pause_log {
public:
  static constexpr std::size_t most = 64;

  pause_log() { all_.reserve(most); }

  void note(const host_pause& which) {
    if (all_.size() == most) merge_oldest();
    all_.push_back({.begin = which.seen,
                    .end = which.end,
                    .lost = std::max(clock::duration::zero(), which.end - which.due),
                    .doubtful = std::max(clock::duration::zero(), which.due - which.seen)});
  }

  /// How much longer what began at `since` may take, beyond `limit`.
  [[nodiscard]] clock::duration extension(clock::time_point since, clock::duration limit) const {
    clock::duration lost{};
    clock::duration doubtful{};
    for (const auto& each : all_) {
      if (each.end <= since) continue;
      // Of one that it began in, the last part.
      const auto within = since <= each.begin ? each.lost + each.doubtful : each.end - since;
      const auto certain = std::min(each.lost, within);
      lost += certain;
      doubtful += std::min(each.doubtful, within - certain);
    }
    return lost + std::min(doubtful, limit);
  }

private:
  struct entry {
    clock::time_point begin;
    clock::time_point end;
    clock::duration lost{};
    clock::duration doubtful{};
  };

  void merge_oldest() {
    auto& second = all_[1];
    second.begin = all_[0].begin;
    second.lost += all_[0].lost;
    second.doubtful += all_[0].doubtful;
    all_.erase(all_.begin());
  }

  std::vector<entry> all_;  // by end
};

}  // namespace muster
