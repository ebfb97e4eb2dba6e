// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <muster/memory/detail/block.hpp>
#include <muster/memory/detail/shared_block.hpp>

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
  /// A value of the cache, which it may outlive.
  template <class T>
  class kept;

  /// The value made from block `key`, or the one that `make()` makes now. Throws what `make` throws.
  template <class T, class Make>
  [[nodiscard]] kept<T> find_or_make(block_ref key, Make make) {
    auto found = find(key, type_mark<T>());
    if (found == nullptr) {
      found = std::unique_ptr<any_value>(new value_of<T>(make));
      keep(key, type_mark<T>(), found);
    }
    return kept<T>(std::move(found));
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
  // There is one for each callable that a program maps, so little is made for each: no std::shared_ptr of its own.
  struct any_value {
    any_value() = default;
    any_value(const any_value&) = delete;
    any_value& operator=(const any_value&) = delete;
    virtual ~any_value() = default;
  };
  template <class T>
  struct value_of final : any_value {
    template <class Make>
    explicit value_of(Make& make) : value(make()) {}
    T value;
  };
  struct entry {
    block_ref key;
    const void* type = nullptr;
    std::shared_ptr<any_value> value;
  };

  [[nodiscard]] std::shared_ptr<any_value> find(block_ref key, const void* type) const noexcept {
    for (const auto& each : entries_) {
      if (each.key == key && each.type == type) return each.value;
    }
    return nullptr;
  }
  void keep(block_ref key, const void* type, const std::shared_ptr<any_value>& value) noexcept {
    entries_[next_] = {.key = key, .type = type, .value = value};
    next_ = (next_ + 1) % entries_.size();
  }

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

template <class T>
class worker_cache::kept {
public:
  [[nodiscard]] T& operator*() const noexcept { return static_cast<value_of<T>&>(*value_).value; }
  [[nodiscard]] T* operator->() const noexcept { return &**this; }

private:
  friend worker_cache;
  explicit kept(std::shared_ptr<any_value> value) noexcept : value_(std::move(value)) {}

  std::shared_ptr<any_value> value_;
};

}  // namespace muster
