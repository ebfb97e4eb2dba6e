// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <vector>

#include <muster/memory/domain.hpp>
#include <muster/rpc/detail/group_table.hpp>
#include <muster/rpc/detail/name_table.hpp>
#include <muster/rpc/rpc_change.hpp>

namespace muster::detail {

/// What has changed in a group from one look at its memory to the next, in the order in which it did.
///
/// Members' lines count their incarnations, and lines of names their generations, so that a look tells what happened
/// since the one before, not only what is different: that a member died and came back, and of a name that came and went
/// what it was, unless its line has had yet another since (name_table.hpp). Each change has a stamp, from a counter of
/// the group; deaths have none, and come before what they made possible.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Cost: a look goes over all lines.
class change_finder {
public:
  /// The first look is made here. Lifetime: borrows all.
  change_finder(const group_table& table, const name_table& names, const domain& where);

  [[nodiscard]] std::vector<rpc_change> look();

private:
  struct stamped {
    std::uint64_t at = 0;
    std::uint32_t order = 0;  // of those with the same stamp
    rpc_change what;
  };
  struct seen_member {
    std::uint32_t incarnation = 0;
    bool is_here = false;
  };
  struct seen_name {
    std::uint64_t generation = 0;
    bool is_there = false;
    named_thing what;
  };

  void look_at_member(std::size_t member);
  void look_at_name(std::size_t line);
  void add(std::uint64_t at, rpc_change_kind kind, std::size_t member, std::uint32_t incarnation,
           const named_thing* name = nullptr);
  [[nodiscard]] std::uint64_t end_with_owner(const named_thing& what) const noexcept;
  void add_end(std::uint64_t at, const named_thing& what);

  const group_table& table_;
  const name_table& names_;
  const domain& domain_;
  std::vector<seen_member> members_;
  std::vector<seen_name> lines_;
  std::vector<stamped> found_;
};

}  // namespace muster::detail
