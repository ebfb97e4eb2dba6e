// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace muster {

/// Which workers have entered something into their completion rings since the parent looked: a bit for each, so that a
/// parent of many workers reads a few words and not every ring.
///
/// A worker enters first and sets its bit afterwards; the parent clears the bits first and reads the rings afterwards.
/// All accesses are sequentially consistent: an entry whose worker found its bit set is read by the parent that clears
/// that bit. A worker that dies between the two steps owes its bit: recovery reads its ring.
///
/// `Word` is std::atomic<std::uint64_t>, or the word of a model checker.
///
/// Thread safety: safe.
/// Process safety: workers tell, the parent takes; each may die at any instruction.
template <class Word>
class basic_ring_news {
public:
  /// Lifetime: borrows the shared words, one bit per worker.
  explicit basic_ring_news(std::span<Word> words) noexcept : words_(words) {}

  /// For the worker, after it has entered something. Cost: a load while the parent has not looked.
  void tell(std::size_t worker) noexcept {
    auto& word = words_[worker / 64];
    const auto bit = std::uint64_t{1} << (worker % 64);
    if ((word.load(std::memory_order_seq_cst) & bit) == 0) word.fetch_or(bit, std::memory_order_seq_cst);
  }

  /// Whether a worker has told since the last take().
  [[nodiscard]] bool is_any() const noexcept {
    for (auto& word : words_) {
      if (word.load(std::memory_order_seq_cst) != 0) return true;
    }
    return false;
  }

  /// Clears the bits of workers 64 × group and on. Returns those that were set, the first worker's as the lowest.
  [[nodiscard]] std::uint64_t take(std::size_t group) noexcept {
    if (words_[group].load(std::memory_order_seq_cst) == 0) return 0;
    return words_[group].exchange(0, std::memory_order_seq_cst);
  }

private:
  std::span<Word> words_;
};

using ring_news = basic_ring_news<std::atomic<std::uint64_t>>;

}  // namespace muster
