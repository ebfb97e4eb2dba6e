// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/params/detail/kv_async.hpp>
#include <muster/params/detail/kv_files.hpp>
#include <muster/params/detail/kv_members.hpp>
#include <muster/params/detail/kv_sender.hpp>
#include <muster/params/gradient_compression.hpp>
#include <muster/params/kv_store.hpp>

namespace muster::detail {

/// Throws errc::invalid_argument unless there are as many.
void require_as_many(std::size_t keys, std::size_t values);

/// One that takes part in a key-value store.
///
/// Thread safety: safe.
class kv_core {
public:
  kv_core(const kv_ticket& ticket, std::size_t rank);
  kv_core(const kv_core&) = delete;
  kv_core& operator=(const kv_core&) = delete;
  ~kv_core() = default;

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return how_.workers; }
  [[nodiscard]] kv_kind kind() const noexcept { return kind_; }
  /// What lies on GPUs is in it as it was written back last.
  [[nodiscard]] const store& values() const noexcept { return values_; }
  /// With what lies on GPUs.
  [[nodiscard]] const store& written_values() const;
  [[nodiscard]] tensor pull(const store_key& key) const;
  [[nodiscard]] std::vector<tensor> pull_all(const std::vector<store_key>& keys) const;
  void save(const std::string& path) const;
  [[nodiscard]] const kv_members& members() const noexcept { return members_; }
  /// Until when a call goes on.
  [[nodiscard]] deadline end_of_call(std::chrono::nanoseconds given = {}) const;

  /// Throws errc::invalid_argument where there is no such value.
  void require_there(const store_key& key) const { sender_.require_there(key); }
  void init(const std::vector<store_key>& keys, const std::vector<tensor>& values) MUSTER_EXCLUDES(mutex_);
  void push(const std::vector<store_key>& keys, std::vector<kv_gradient> gradients);
  [[nodiscard]] future<void> push_async(const store_key& key, kv_gradient gradient, int priority);
  [[nodiscard]] future<tensor> pull_async(const store_key& key, int priority);
  /// What is pushed of a tensor: it, or its bits.
  [[nodiscard]] kv_gradient gradient_of(const store_key& key, const tensor& value) MUSTER_EXCLUDES(mutex_);
  void set_compression(const gradient_compression& how) MUSTER_EXCLUDES(mutex_);
  void set_rule(const update_rule& rule);
  void set_updater(const kv_updater_setter& set);
  void send_command(int head, const std::string& body) const;
  void on_command(std::function<void(int, std::string)> run) MUSTER_EXCLUDES(mutex_);
  void set_timeout(std::chrono::nanoseconds timeout);
  void barrier(std::chrono::nanoseconds timeout);
  [[nodiscard]] const kv_files& files() const noexcept { return files_; }

private:
  [[nodiscard]] std::size_t choose_owner(std::size_t bytes) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool run_command(int head, const std::string& body) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::uint64_t count_of(std::size_t rank) const;
  void align_barriers();
  void forget_init(const store_key& key) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool compresses() MUSTER_EXCLUDES(mutex_);
  void note_init(const store_key& key) MUSTER_EXCLUDES(mutex_);
  void init_one(const store_key& key, const tensor& value) MUSTER_EXCLUDES(mutex_);

  const kv_kind kind_;
  const kv_options how_;
  const std::size_t rank_;
  std::atomic<std::int64_t> timeout_;  // nanoseconds
  const store values_;
  const std::shared_ptr<kv_placed> placed_;  // null: nothing lies on GPUs
  mutex mutex_;
  std::function<void(int, std::string)> command_ MUSTER_GUARDED_BY(mutex_);
  kv_members members_;
  kv_sender sender_;
  const kv_files files_;
  std::set<store_key> known_ MUSTER_GUARDED_BY(mutex_);       // initialized here
  std::vector<std::size_t> loads_ MUSTER_GUARDED_BY(mutex_);  // bytes by owner, as this worker has dealt them
  gradient_compression compression_ MUSTER_GUARDED_BY(mutex_);
  std::map<store_key, tensor> residuals_ MUSTER_GUARDED_BY(mutex_);  // what compression has not sent yet
  kv_async async_;                                                   // goes first
};

}  // namespace muster::detail
