// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/call_progress.hpp>

#include <algorithm>

namespace muster::detail {

void call_progress::begin(std::uint64_t epoch) noexcept {
  epoch_ = epoch;
  std::ranges::fill(phases_, rank_phase::ready);
  std::ranges::fill(doomed_, std::uint8_t{0});
  fails_ = false;
  aborted_ = false;
}

void call_progress::answered(std::size_t rank, answer_word what) noexcept {
  if (what.epoch != epoch_ || !is_awaited(rank) || is_doomed(rank) || what.what == rank_phase::absent) return;
  phases_[rank] = what.what;
  if (what.what == rank_phase::failed || what.what == rank_phase::dropped) fails_ = true;
}

void call_progress::died(std::size_t rank) noexcept {
  phases_[rank] = rank_phase::absent;
  fails_ = true;
}

bool call_progress::is_anybody_awaited() const noexcept {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (is_awaited(rank)) return true;
  }
  return false;
}

std::optional<std::size_t> call_progress::late() const noexcept {
  std::optional<std::size_t> found;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (!is_awaited(rank)) continue;
    if (phases_[rank] != rank_phase::computed) return rank;
    if (!found) found = rank;
  }
  return found;
}

call_progress::next call_progress::decide() noexcept {
  if (fails_ && !aborted_) {
    aborted_ = true;
    return next::abort;
  }
  if (is_anybody_awaited()) return next::wait;
  return fails_ ? next::settled : next::commit;
}

}  // namespace muster::detail
