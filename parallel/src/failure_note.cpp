// SPDX-License-Identifier: BSL-1.0
#include "failure_note.hpp"

#include <exception>
#include <utility>

#include <muster/collectives/group_error.hpp>
#include <muster/memory/detail/wait/rank_identity.hpp>

namespace muster::detail {

namespace {

std::vector<std::uint32_t> list_of(const rank_set& ranks) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks.test(rank)) list.push_back(rank);
  }
  return list;
}

/// Finds the ranks of a world among the members of groups.
class rank_finder {
public:
  explicit rank_finder(const world_memory& memory) : memory_(memory) {}

  void add(const std::vector<group_member>& members) noexcept {
    for (const auto& each : members) add(each);
  }
  [[nodiscard]] const rank_set& found() const noexcept { return found_; }

private:
  // A process may be several ranks of a group, and one of the world.
  void add(const group_member& member) noexcept {
    if (member.pid == 0) return;
    for (std::size_t rank = 0; rank < memory_.shape().ranks; ++rank) {
      const auto here = rank_identity::unpack(memory_.line(rank).member.load(std::memory_order_acquire));
      if (here.pid == member.pid) found_.set(rank);
    }
  }

  const world_memory& memory_;
  rank_set found_;
};

void add_current_exception(rank_finder& to) {
  try {
    throw;
  } catch (const group_error& failure) {
    to.add(failure.lost());
    to.add(failure.broken_by());
  } catch (const member_failed& failure) {
    to.add(failure.failed());
  } catch (...) {  // NOLINT(bugprone-empty-catch): it is about no group
  }
}

void add_all(rank_finder& to, unsigned most) {
  add_current_exception(to);
  if (most == 0) return;
  try {
    throw;
  } catch (const std::nested_exception& outer) {
    if (outer.nested_ptr() == nullptr) return;
    try {
      outer.rethrow_nested();
    } catch (...) {
      add_all(to, most - 1);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): the end of the chain
  }
}

}  // namespace

failure_note failure_note::of(error_info why, const rank_set& caused_by, const rank_set& ended) {
  return {.why = std::move(why), .caused_by = list_of(caused_by), .ended = list_of(ended)};
}

rank_set failure_note::set_of(const std::vector<std::uint32_t>& ranks) noexcept {
  rank_set set;
  for (const auto rank : ranks) {
    if (rank < set.size()) set.set(rank);
  }
  return set;
}

rank_set ranks_named_by_current_exception(const world_memory& memory) noexcept {
  constexpr unsigned longest_chain = 64;  // an exception may be nested in itself
  rank_finder found(memory);
  try {
    add_all(found, longest_chain);
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory; what is not known does not change the order
  }
  return found.found();
}

}  // namespace muster::detail
