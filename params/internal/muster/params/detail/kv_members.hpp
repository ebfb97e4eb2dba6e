// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/base/clock.hpp>
#include <muster/params/detail/kv_owner.hpp>
#include <muster/params/detail/kv_round.hpp>
#include <muster/params/kv_ticket.hpp>
#include <muster/params/store.hpp>
#include <muster/rpc/remote_ref.hpp>
#include <muster/rpc/rpc_group.hpp>

namespace muster::detail {

/// Those that take part in a key-value store: which of them are there, and the parts of those that own keys.
///
/// Thread safety: safe.
class kv_members {
public:
  /// Joins as that rank, whose part as an owner, if it is one, has what is `placed` (null: nothing), and runs commands
  /// by `command`.
  kv_members(const kv_ticket& ticket, std::size_t rank, const store& values, std::shared_ptr<kv_placed> placed,
             kv_owner::command_runner command);
  kv_members(const kv_members&) = delete;
  kv_members& operator=(const kv_members&) = delete;
  /// Leaves, which ends the callbacks.
  ~kv_members() { group_.leave(); }

  [[nodiscard]] const rpc_group& group() const noexcept { return group_; }
  /// Where futures are from.
  [[nodiscard]] std::shared_ptr<future_home> home() const;

  [[nodiscard]] std::size_t owner_count() const noexcept { return owners_; }
  [[nodiscard]] kv_worker find(std::size_t rank) const;
  [[nodiscard]] std::vector<kv_worker> workers() const;
  [[nodiscard]] std::vector<std::size_t> living() const;
  /// What the store is to name as the owner: that rank as it is, or as it will be when it joins.
  [[nodiscard]] kv_ownership as_owner(std::size_t rank) const;
  /// Whether that one will never be there (again).
  [[nodiscard]] bool is_gone(const kv_ownership& which) const;
  /// Waits for one that is to join, and for what it publishes next; of one that is gone: nothing. Throws
  /// errc::timed_out.
  [[nodiscard]] std::optional<remote_ref<kv_owner>> find_owner(const kv_ownership& which, deadline until) const;
  [[nodiscard]] std::vector<remote_ref<kv_owner>> owners(deadline until) const;

private:
  [[nodiscard]] std::optional<remote_ref<kv_owner>> published_by(const kv_ownership& which) const;

  const std::size_t workers_;
  const std::size_t owners_;
  const store values_;
  rpc_group group_;
  const std::vector<std::size_t> places_;  // by rank: among the group's members
  std::optional<remote_ref<kv_owner>> own_;
};

}  // namespace muster::detail
