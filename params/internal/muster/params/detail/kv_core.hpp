// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/params/detail/kv_owner.hpp>
#include <muster/params/kv_store.hpp>
#include <muster/rpc/rpc_group.hpp>

namespace muster::detail {

/// One that takes part in a key-value store: it pushes to the owners of keys, waits for the versions that these make,
/// and, when an owner dies, has another one take its keys over.
///
/// Thread safety: safe.
class kv_core {
public:
  kv_core(const kv_ticket& ticket, std::size_t rank);
  explicit kv_core(kv_kind kind);
  kv_core(const kv_core&) = delete;
  kv_core& operator=(const kv_core&) = delete;
  ~kv_core();

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return how_.workers; }
  [[nodiscard]] kv_kind kind() const noexcept { return kind_; }
  [[nodiscard]] const store& values() const noexcept { return values_; }
  [[nodiscard]] const std::optional<rpc_group>& group() const noexcept { return group_; }

  void init(const store_key& key, const tensor& value) MUSTER_EXCLUDES(mutex_);
  void push(std::span<const store_key> keys, std::span<const tensor> values) MUSTER_EXCLUDES(mutex_);
  void set_rule(const update_rule& rule);
  void barrier(std::chrono::nanoseconds timeout);
  void set_own_updater(kv_updater by) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<remote_ref<kv_owner>> owners() const;
  [[nodiscard]] std::vector<std::size_t> living() const;

private:
  /// A push on its way.
  struct sent {
    const store_key* key = nullptr;
    const tensor* value = nullptr;
    std::uint64_t count = 0;
    std::size_t owner = 0;
    kv_answer answer{};
  };

  [[nodiscard]] std::size_t owner_count() const noexcept;
  [[nodiscard]] member_state state_of(std::size_t rank) const;
  [[nodiscard]] member_state state_for_owner(std::size_t rank) const;
  [[nodiscard]] std::optional<remote_ref<kv_owner>> find_owner(std::size_t rank, deadline until) const;
  [[nodiscard]] std::size_t choose_owner(std::size_t bytes) MUSTER_EXCLUDES(mutex_);
  void look_at_change();
  void send(sent& which, deadline until);
  [[nodiscard]] kv_answer ask(const sent& which, deadline until);
  void await(sent& which, deadline until);
  void take_over(const store_key& key, std::size_t from);
  [[noreturn]] void throw_failed(const store_key& key) const;
  [[noreturn]] void throw_late(const sent& which) const;

  const kv_kind kind_;
  const kv_options how_;
  const std::size_t rank_;
  const store values_;
  std::atomic<std::uint64_t> changes_ = 0;  // in the group
  mutex mutex_;
  std::map<store_key, std::uint64_t> pushes_ MUSTER_GUARDED_BY(mutex_);  // of this worker
  std::set<store_key> known_ MUSTER_GUARDED_BY(mutex_);                  // initialized here
  std::vector<std::size_t> loads_ MUSTER_GUARDED_BY(mutex_);  // bytes by owner, as this worker has dealt them
  std::optional<kv_owner> local_ MUSTER_GUARDED_BY(mutex_);
  std::optional<rpc_group> group_;
  std::optional<remote_ref<kv_owner>> own_;
};

}  // namespace muster::detail
