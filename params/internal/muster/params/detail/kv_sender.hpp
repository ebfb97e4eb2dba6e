// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <muster/async/future.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/params/detail/kv_gradient.hpp>
#include <muster/params/detail/kv_members.hpp>
#include <muster/params/store.hpp>
#include <muster/params/store_key.hpp>

namespace muster::detail {

/// A push on its way.
///
/// Thread safety: belongs to one thread at a time.
struct kv_sending {
  store_key key;
  kv_push what;
  deadline until;
  kv_ownership owner{};
  std::optional<future<kv_answer>> call{};
  std::shared_ptr<void> turn{};  ///< no other push of the key is under way
};

/// A worker's pushes: numbered, sent to the owner of their key, and sent again to the next one when that dies.
///
/// Thread safety: safe.
class kv_sender {
public:
  /// Gives an owner the updater that this worker has set.
  using updater_giver = std::function<void(const remote_ref<kv_owner>& to)>;

  kv_sender(const kv_members& members, const store& values, std::size_t rank);

  void set_updater_giver(updater_giver give) MUSTER_EXCLUDES(mutex_);

  /// Throws errc::invalid_argument where there is no such value.
  void require_there(const store_key& key) const;
  /// Numbers a push, and sends it, when no other push of the key is under way. Throws as require_there.
  [[nodiscard]] kv_sending begin(const store_key& key, kv_gradient gradient, deadline until) MUSTER_EXCLUDES(mutex_);
  void send(kv_sending& which);
  /// What has become of it: the version that has it; nothing, when it is to be sent again. Throws what failed it.
  [[nodiscard]] std::optional<std::uint64_t> judge(const kv_sending& which, outcome<kv_answer> how);
  /// Waits for it. Returns the version that has it.
  std::uint64_t finish(kv_sending& which);

private:
  [[nodiscard]] std::shared_ptr<void> take_turn(const store_key& key, deadline until) MUSTER_EXCLUDES(mutex_);
  void end_turn(const store_key& key) noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] kv_answer withdraw(const kv_sending& which) const;
  [[nodiscard]] std::uint64_t next_number(const store_key& key) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<kv_answer> answer_of(const kv_sending& which, outcome<kv_answer> how) const;
  void take_over(const store_key& key, const kv_ownership& from);
  void give_updater(const kv_sending& which) MUSTER_EXCLUDES(mutex_);
  [[noreturn]] void throw_failed(const kv_sending& which, const kv_answer& why) const;
  [[nodiscard]] std::string describe_rounds() const;

  const kv_members& members_;
  const store values_;
  const std::size_t rank_;
  const std::uint64_t first_;  // number of its pushes
  mutex mutex_;
  condition turn_ended_;
  std::set<store_key> taken_ MUSTER_GUARDED_BY(mutex_);                   // keys with a push under way
  std::map<store_key, std::uint64_t> numbers_ MUSTER_GUARDED_BY(mutex_);  // the next one's
  updater_giver giver_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
