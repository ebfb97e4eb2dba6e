// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which operation of which template is which, and what it is to weaken one.

#include <atomic>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace muster::weak {

/// What a word is for.
enum class part : std::uint8_t {
  slot,
  lane_head,
  lane_entry,
  sleeping,
  spinning,
  parked,
  ring_tail,
  ring_entry,
  news,
  armed,
  order,
  record  ///< the parent's own words, of dispatcher and task_record
};

/// Which procedure of the product is running, where the word alone does not tell.
enum class site : std::uint8_t {
  any,
  read,
  publish,
  claim,
  revoke,
  request,
  complete,
  retire,
  seize,
  look,
  advance,
  room,
  put,
  push,
  drain,
  sleep,
  wake,
  bell,
  order
};

enum class operation : std::uint8_t { load, store, exchange, set_bits, touch, clear_bits, compare };

/// An operation as the product's source has it. `touch` is a fetch_or of nothing.
struct spot {
  site where = site::any;
  part of = part::slot;
  operation what = operation::load;
  friend auto operator<=>(const spot&, const spot&) = default;
};

enum class weakening : std::uint8_t {
  none,
  no_acquire,
  no_release,
  no_order,   ///< sequentially consistent becomes acquire, release or both
  plain_look  ///< a read-modify-write becomes a load and, if it changes anything, a store
};

struct mutation {
  spot at;
  weakening how = weakening::none;
  friend auto operator<=>(const mutation&, const mutation&) = default;
};

[[nodiscard]] std::memory_order weakened(std::memory_order order, weakening how);
/// What can be done to an operation of that order.
[[nodiscard]] std::vector<weakening> weakenings_of(operation what, std::memory_order order);
[[nodiscard]] std::string name_of(const mutation& which);

}  // namespace muster::weak
