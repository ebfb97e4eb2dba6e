// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <muster/memory/block.hpp>
#include <muster/memory/shared_block.hpp>

namespace muster {

/// The blocks that came with the arguments of a call, and those that go with its reply. Most calls have none.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
struct carried_blocks {
  /// The next borrowed one, to be filled; what an earlier call had allocated is there again.
  [[nodiscard]] shared_block& add_borrowed() {
    if (borrowed_count == borrowed.size()) borrowed.emplace_back();
    return borrowed[borrowed_count++];
  }
  /// To be called when all have been let go that others have handles of.
  void forget_borrowed() noexcept {
    constexpr std::size_t most_kept = 8;
    if (borrowed.size() > most_kept) borrowed.resize(most_kept);
    borrowed_count = 0;
  }

  std::vector<shared_block> borrowed;  ///< so many as the next says
  std::size_t borrowed_count = 0;
  std::vector<std::uint64_t> sent;  ///< holds
  std::byte* names = nullptr;       ///< where those are written
};

/// Values that a worker decoded from blocks and will need again, because many tasks refer to the same block. The last
/// few are kept, and dropped when the worker goes to sleep.
///
/// Thread safety: an object belongs to the worker's thread.
class worker_cache {
public:
  /// The value made from block `key`, or the one that `make()` makes now. Throws what `make` throws.
  template <class T, class Make>
  [[nodiscard]] std::shared_ptr<T> find_or_make(block_ref key, Make make) {
    for (const auto& each : entries_) {
      if (each.key == key && each.type == type_mark<T>()) return std::static_pointer_cast<T>(each.value);
    }
    auto made = std::make_shared<T>(make());
    entries_[next_] = {.key = key, .type = type_mark<T>(), .value = made};
    next_ = (next_ + 1) % entries_.size();
    return made;
  }

  void clear() noexcept { entries_ = {}; }

  /// An empty one, with the room that an earlier call made. A call within another has one of its own.
  [[nodiscard]] std::unique_ptr<carried_blocks> take_carried() {
    return spare_ != nullptr ? std::move(spare_) : std::make_unique<carried_blocks>();
  }
  void give_back(std::unique_ptr<carried_blocks> used) noexcept {
    used->forget_borrowed();
    used->sent.clear();
    spare_ = std::move(used);
  }

private:
  struct entry {
    block_ref key;
    const void* type = nullptr;
    std::shared_ptr<void> value;
  };

  // A different address for each type; within one process that is identity enough.
  template <class T>
  static const void* type_mark() noexcept {
    static const char mark = 0;
    return &mark;
  }

  std::array<entry, 4> entries_;
  std::unique_ptr<carried_blocks> spare_;
  std::size_t next_ = 0;
};

}  // namespace muster
