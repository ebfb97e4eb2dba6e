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

bool is_part_of(const extent_map::word& which, std::uint32_t descriptor) noexcept {
  const auto found = read(which);
  return found.state == extent_state::shared && found.generation == descriptor;
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
  constexpr int attempts = 16;  // as long as it was others who came first, who may have given back what they took
  for (int attempt = 0; attempt < attempts; ++attempt) {
    bool lost = false;
    for (auto pass : passes) {
      while (const auto found = find_free(pass, count)) {
        if (try_claim_all(owner, {*found, count})) return extent_run{*found, count};
        lost = true;
        pass = {*found + 1, pass.first + pass.count - *found - 1};
      }
    }
    if (!lost) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::size_t> extent_map::find_free(extent_run where, std::size_t count) const noexcept {
  std::size_t length = 0;
  for (std::size_t extent = where.first; extent < where.first + where.count; ++extent) {
    length = read(words_[extent]).state == extent_state::free ? length + 1 : 0;
    if (length == count) return extent + 1 - count;
  }
  return std::nullopt;
}

// From the end, so that from the first claim on no run of that length seems free there: two who claimed long runs from
// the beginning would overtake one another until there is no room left.
bool extent_map::try_claim_all(participant_id owner, extent_run run) noexcept {
  const auto end = run.first + run.count;
  for (auto extent = end; extent-- > run.first;) {
    if (try_claim(owner, extent)) continue;
    release(owner, {extent + 1, end - extent - 1});
    return false;
  }
  return true;
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

void extent_map::share(participant_id from, std::uint32_t descriptor, extent_run run) noexcept {
  const extent_ownership shared{
      .generation = descriptor, .owner = participant_id::everybody, .state = extent_state::shared};
  for (auto& word : words_.subspan(run.first, run.count)) {
    const auto found = read(word);
    if (found.owner == from && found.state == extent_state::held) word.store(shared.pack(), std::memory_order_release);
  }
}

void extent_map::unshare(std::uint32_t descriptor, participant_id to, extent_run run) noexcept {
  const auto state = to == participant_id::none ? extent_state::free : extent_state::held;
  for (auto& word : words_.subspan(run.first, run.count)) {
    if (!is_part_of(word, descriptor)) continue;
    const extent_ownership given{.generation = descriptor, .owner = to, .state = state};
    word.store(given.pack(), std::memory_order_release);
  }
}

std::size_t extent_map::shared_count(std::uint32_t descriptor, extent_run run) const noexcept {
  const auto words = words_.subspan(run.first, run.count);
  const auto is_part = [=](const word& each) { return is_part_of(each, descriptor); };
  return static_cast<std::size_t>(std::count_if(words.begin(), words.end(), is_part));
}

participant_id extent_map::owner_of(std::size_t extent) const noexcept { return read(words_[extent]).owner; }

std::size_t extent_map::held_count() const noexcept {
  const auto used = words_.first(used_count());
  const auto held = [](const word& each) { return read(each).state != extent_state::free; };
  return static_cast<std::size_t>(std::count_if(used.begin(), used.end(), held));
}

}  // namespace muster
