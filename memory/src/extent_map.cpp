// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/extent_map.hpp>

#include <algorithm>
#include <array>

namespace muster {

namespace {

using extent_ownership = ownership<extent_state>;

extent_ownership read(const extent_map::word& which) noexcept {
  return extent_ownership::unpack(which.load(std::memory_order_acquire));
}

}  // namespace

bool extent_map::try_claim(participant_id owner, std::size_t extent) noexcept {
  auto expected = words_[extent].load(std::memory_order_relaxed);
  const auto found = extent_ownership::unpack(expected);
  if (found.state != extent_state::free) return false;
  const extent_ownership claimed{.generation = found.generation + 1, .owner = owner, .state = extent_state::held};
  used_.raise_to(extent + 1);
  // Acquire: what the last holder did to the extent happened before.
  return words_[extent].compare_exchange_strong(expected, claimed.pack(), std::memory_order_acq_rel);
}

std::size_t extent_map::used_count() const noexcept { return std::min<std::size_t>(used_.count(), words_.size()); }

std::optional<extent_run> extent_map::claim(participant_id owner, std::size_t count, std::size_t hint) noexcept {
  if (count == 0 || count > size()) return std::nullopt;
  // A second pass begins at 0 and goes a run's length past the hint, so that every position is tried once.
  const std::size_t start = std::min(hint, size());
  const std::array<extent_run, 2> passes = {extent_run{start, size() - start},
                                            extent_run{0, std::min(size(), start + count)}};
  for (const auto& pass : passes) {
    std::size_t length = 0;
    for (std::size_t extent = pass.first; extent < pass.first + pass.count; ++extent) {
      if (!try_claim(owner, extent)) {
        release(owner, {extent - length, length});
        length = 0;
      } else if (++length == count) {
        return extent_run{extent + 1 - count, count};
      }
    }
    release(owner, {pass.first + pass.count - length, length});
  }
  return std::nullopt;
}

void extent_map::release(participant_id owner, extent_run run) noexcept { transfer(owner, participant_id::none, run); }

void extent_map::transfer(participant_id from, participant_id to, extent_run run) noexcept {
  const auto state = to == participant_id::none ? extent_state::free : extent_state::held;
  for (std::size_t extent = run.first; extent < run.first + run.count; ++extent) {
    const auto found = read(words_[extent]);
    if (found.owner != from || found.state != extent_state::held) continue;
    const extent_ownership changed{.generation = found.generation, .owner = to, .state = state};
    words_[extent].store(changed.pack(), std::memory_order_release);  // only the owner changes a held word
  }
}

participant_id extent_map::owner_of(std::size_t extent) const noexcept { return read(words_[extent]).owner; }

std::size_t extent_map::held_count() const noexcept {
  const auto used = words_.first(used_count());
  const auto held = [](const word& each) { return read(each).state != extent_state::free; };
  return static_cast<std::size_t>(std::count_if(used.begin(), used.end(), held));
}

}  // namespace muster
