// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <muster/memory/detail/ownership.hpp>

namespace muster {

/// The arena is divided into extents of this size; a process claims whole extents and divides them privately.
inline constexpr std::size_t extent_bytes = std::size_t{64} * 1024;

[[nodiscard]] constexpr std::size_t extents_for(std::size_t bytes) noexcept {
  return bytes / extent_bytes + (bytes % extent_bytes != 0 ? 1 : 0);
}

/// `shared`: belongs to a block that everybody owns; the word's generation is that block's descriptor.
enum class extent_state : std::uint16_t { free, held, shared };

/// A run of neighbouring extents.
struct extent_run {
  std::size_t first = 0;
  std::size_t count = 0;

  [[nodiscard]] constexpr std::size_t offset_bytes() const noexcept { return first * extent_bytes; }
  [[nodiscard]] constexpr std::size_t size_bytes() const noexcept { return count * extent_bytes; }
  friend constexpr bool operator==(const extent_run&, const extent_run&) noexcept = default;
};

/// Who holds which part of the arena: one ownership word per extent, claimed by compare-and-swap, no lock and no
/// free list. A process that dies between claiming and using a run leaves words with its name, by which the host finds
/// and frees them.
///
/// `Word` is std::atomic<std::uint64_t>, or what a model checker puts in its place.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: all participants use it at once.
/// Cost: one compare-and-swap per extent; a claim looks at every word at most once.
template <class Word>
class basic_extent_map {
public:
  using word = Word;

  /// Lifetime: borrows the shared words and their mark.
  basic_extent_map(std::span<word> words, basic_table_mark<Word> used) noexcept : words_(words), used_(used) {}

  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }
  /// No extent from here on was ever claimed.
  [[nodiscard]] std::size_t used_count() const noexcept;

  /// Claims `count` neighbouring free extents, looking from `hint` on and around; nothing when there is no such run.
  [[nodiscard]] std::optional<extent_run> claim(participant_id owner, std::size_t count, std::size_t hint) noexcept;

  /// Frees a run. Requires: `owner` holds all of it.
  void release(participant_id owner, extent_run run) noexcept;

  /// Hands a run over; extents that `from` does not hold stay as they are.
  void transfer(participant_id from, participant_id to, extent_run run) noexcept;

  /// Makes what `from` holds of the run part of a block that everybody owns.
  void share(participant_id from, std::uint32_t descriptor, extent_run run) noexcept;
  /// Gives those extents of the run that are part of that block to `to`; none: frees them.
  /// Requires: nobody else does so.
  void unshare(std::uint32_t descriptor, participant_id to, extent_run run) noexcept;
  /// How many extents of the run are part of that block.
  [[nodiscard]] std::size_t shared_count(std::uint32_t descriptor, extent_run run) const noexcept;

  [[nodiscard]] participant_id owner_of(std::size_t extent) const noexcept;
  [[nodiscard]] std::size_t held_count() const noexcept;

private:
  bool try_claim(participant_id owner, std::size_t extent) noexcept;
  bool try_claim_all(participant_id owner, extent_run run) noexcept;
  [[nodiscard]] std::optional<std::size_t> find_free(extent_run where, std::size_t count) const noexcept;

  static ownership<extent_state> read(const word& which) noexcept {
    return ownership<extent_state>::unpack(which.load(std::memory_order_acquire));
  }
  static bool is_part_of(const word& which, std::uint32_t descriptor) noexcept {
    const auto found = read(which);
    return found.state == extent_state::shared && found.generation == descriptor;
  }

  std::span<word> words_;
  basic_table_mark<Word> used_;
};

template <class Word>
bool basic_extent_map<Word>::try_claim(participant_id owner, std::size_t extent) noexcept {
  auto expected = words_[extent].load(std::memory_order_relaxed);
  const auto found = ownership<extent_state>::unpack(expected);
  if (found.state != extent_state::free) return false;
  const ownership<extent_state> claimed{
      .generation = found.generation + 1, .owner = owner, .state = extent_state::held};
  used_.raise_to(extent + 1);
  // Acquire: what the last holder did to the extent happened before.
  return words_[extent].compare_exchange_strong(expected, claimed.pack(), std::memory_order_acq_rel);
}

template <class Word>
std::size_t basic_extent_map<Word>::used_count() const noexcept {
  return std::min<std::size_t>(used_.count(), words_.size());
}

template <class Word>
std::optional<extent_run> basic_extent_map<Word>::claim(participant_id owner, std::size_t count,
                                                        std::size_t hint) noexcept {
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

template <class Word>
std::optional<std::size_t> basic_extent_map<Word>::find_free(extent_run where, std::size_t count) const noexcept {
  std::size_t length = 0;
  for (std::size_t extent = where.first; extent < where.first + where.count; ++extent) {
    length = read(words_[extent]).state == extent_state::free ? length + 1 : 0;
    if (length == count) return extent + 1 - count;
  }
  return std::nullopt;
}

// From the end, so that from the first claim on no run of that length seems free there: two who claimed long runs from
// the beginning would overtake one another until there is no room left.
template <class Word>
bool basic_extent_map<Word>::try_claim_all(participant_id owner, extent_run run) noexcept {
  const auto end = run.first + run.count;
  for (auto extent = end; extent-- > run.first;) {
    if (try_claim(owner, extent)) continue;
    release(owner, {extent + 1, end - extent - 1});
    return false;
  }
  return true;
}

template <class Word>
void basic_extent_map<Word>::release(participant_id owner, extent_run run) noexcept {
  transfer(owner, participant_id::none, run);
}

template <class Word>
void basic_extent_map<Word>::transfer(participant_id from, participant_id to, extent_run run) noexcept {
  const auto state = to == participant_id::none ? extent_state::free : extent_state::held;
  for (std::size_t extent = run.first; extent < run.first + run.count; ++extent) {
    const auto found = read(words_[extent]);
    if (found.owner != from || found.state != extent_state::held) continue;
    const ownership<extent_state> changed{.generation = found.generation, .owner = to, .state = state};
    words_[extent].store(changed.pack(), std::memory_order_release);  // only the owner changes a held word
  }
}

template <class Word>
void basic_extent_map<Word>::share(participant_id from, std::uint32_t descriptor, extent_run run) noexcept {
  const ownership<extent_state> shared{
      .generation = descriptor, .owner = participant_id::everybody, .state = extent_state::shared};
  for (auto& each : words_.subspan(run.first, run.count)) {
    const auto found = read(each);
    if (found.owner == from && found.state == extent_state::held) each.store(shared.pack(), std::memory_order_release);
  }
}

template <class Word>
void basic_extent_map<Word>::unshare(std::uint32_t descriptor, participant_id to, extent_run run) noexcept {
  const auto state = to == participant_id::none ? extent_state::free : extent_state::held;
  for (auto& each : words_.subspan(run.first, run.count)) {
    if (!is_part_of(each, descriptor)) continue;
    const ownership<extent_state> given{.generation = descriptor, .owner = to, .state = state};
    each.store(given.pack(), std::memory_order_release);
  }
}

template <class Word>
std::size_t basic_extent_map<Word>::shared_count(std::uint32_t descriptor, extent_run run) const noexcept {
  const auto words = words_.subspan(run.first, run.count);
  const auto is_part = [=](const word& each) { return is_part_of(each, descriptor); };
  return static_cast<std::size_t>(std::count_if(words.begin(), words.end(), is_part));
}

template <class Word>
participant_id basic_extent_map<Word>::owner_of(std::size_t extent) const noexcept {
  return read(words_[extent]).owner;
}

template <class Word>
std::size_t basic_extent_map<Word>::held_count() const noexcept {
  const auto used = words_.first(used_count());
  const auto held = [](const word& each) { return read(each).state != extent_state::free; };
  return static_cast<std::size_t>(std::count_if(used.begin(), used.end(), held));
}

using extent_map = basic_extent_map<std::atomic<std::uint64_t>>;

}  // namespace muster
