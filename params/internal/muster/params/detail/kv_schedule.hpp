// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include <muster/params/store_key.hpp>

namespace muster::detail {

/// Which of a process's asynchronous operations begins next: those of one key in their order, one at a time; of
/// different keys that of the highest priority, and among equals the first; so many at once at most.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class kv_schedule {
public:
  using number = std::uint64_t;

  explicit kv_schedule(std::size_t window) : window_(window) {}

  /// Returns the operation's number, which tells them apart.
  number add(const store_key& key, int priority);
  /// The next one, which has begun by that; nothing where none can.
  [[nodiscard]] std::optional<number> begin_next();
  /// Requires: it has begun.
  void end(number which);
  /// Whether an operation of that key waits or is under way.
  [[nodiscard]] bool has(const store_key& key) const { return keys_.contains(key); }
  [[nodiscard]] bool is_empty() const noexcept { return all_.empty(); }

private:
  struct operation {
    store_key key;
    int priority = 0;
  };
  struct place {  // among those that may begin
    int priority = 0;
    number which = 0;
    friend bool operator<(const place& a, const place& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.which < b.which;
    }
  };

  void let_in(number which);

  const std::size_t window_;
  std::size_t under_way_ = 0;
  number next_ = 1;
  std::map<number, operation> all_;
  std::map<store_key, std::set<number>> keys_;  // the first of each may begin, or is under way
  std::set<place> ready_;
};

}  // namespace muster::detail
