// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace muster {

/// A set of workers as a bitmap in shared memory: those that sleep, or those that spin.
///
/// Setting and clearing a bit is idempotent, so a death at any instruction leaves at most a bit to clear; a counter
/// would drift. All accesses are read-modify-writes: of two sides that each write their own news and then look here,
/// at least one sees the other's.
///
/// Thread safety: safe.
/// Process safety: parent and workers use it at once.
template <class Word>
class basic_idle_set {
public:
  /// Lifetime: borrows the shared words, one bit per worker.
  explicit basic_idle_set(std::span<Word> words) noexcept : words_(words) {}

  void insert(std::size_t worker) noexcept { words_[worker / 64].fetch_or(bit_of(worker), std::memory_order_acq_rel); }

  /// True when nobody was in the set, and this call put the worker in; false also for a worker that is not among the
  /// first 64.
  bool insert_alone(std::size_t worker) noexcept {
    if (worker >= 64) return false;
    std::uint64_t nobody = 0;
    return words_[0].compare_exchange_strong(nobody, bit_of(worker), std::memory_order_acq_rel,
                                             std::memory_order_relaxed);
  }

  /// Who is in it with the lowest index among the first 64, roughly: it may change at any time.
  [[nodiscard]] std::optional<std::size_t> peek_first() const noexcept {
    const auto word = words_[0].load(std::memory_order_relaxed);
    if (word == 0) return std::nullopt;
    return static_cast<std::size_t>(std::countr_zero(word));
  }

  /// The first 64, a bit for each that is in it, roughly.
  [[nodiscard]] std::uint64_t peek_first_64() const noexcept { return words_[0].load(std::memory_order_relaxed); }

  /// True when the worker was in the set, and this call took it out. A worker beyond the set's room is never in it.
  bool remove(std::size_t worker) noexcept {
    if (worker / 64 >= words_.size()) return false;
    return (words_[worker / 64].fetch_and(~bit_of(worker), std::memory_order_acq_rel) & bit_of(worker)) != 0;
  }

  /// Takes out the worker with the lowest index: the same few are woken again and stay warm.
  std::optional<std::size_t> remove_first() noexcept {
    for (std::size_t index = 0; index < words_.size(); ++index) {
      auto word = words_[index].fetch_or(0, std::memory_order_acq_rel);
      for (; word != 0; word &= word - 1) {
        const auto worker = index * 64 + static_cast<std::size_t>(std::countr_zero(word));
        if (remove(worker)) return worker;
      }
    }
    return std::nullopt;
  }

  /// Whether somebody is in the set, ordered like a write (see above).
  [[nodiscard]] bool check_any() noexcept {
    for (auto& word : words_) {
      if (word.fetch_or(0, std::memory_order_acq_rel) != 0) return true;
    }
    return false;
  }

  /// How many are in the set, roughly: it may change at any time.
  [[nodiscard]] std::size_t count() const noexcept {
    std::size_t total = 0;
    for (const auto& word : words_) {
      total += static_cast<std::size_t>(std::popcount(word.load(std::memory_order_relaxed)));
    }
    return total;
  }

private:
  [[nodiscard]] static constexpr std::uint64_t bit_of(std::size_t worker) noexcept {
    return std::uint64_t{1} << (worker % 64);
  }

  std::span<Word> words_;
};

using idle_set = basic_idle_set<std::atomic<std::uint64_t>>;

}  // namespace muster
