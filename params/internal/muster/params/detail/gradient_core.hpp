// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/params/detail/gradient_reducers.hpp>
#include <muster/params/gradient_server.hpp>

namespace muster::detail {

/// A member's part of a gradient server: a client, and a reducer where it is one.
///
/// Thread safety: safe.
class gradient_core {
public:
  gradient_core(const rpc_group& group, std::shared_ptr<versioned_store> values, std::string name,
                const gradient_options& how);
  gradient_core(const gradient_core&) = delete;
  gradient_core& operator=(const gradient_core&) = delete;
  ~gradient_core();

  void manage(const state_dict& model, const update_rule& rule, learner::schedule rate) MUSTER_EXCLUDES(mutex_);
  void start() MUSTER_EXCLUDES(mutex_);
  void stop() MUSTER_EXCLUDES(mutex_);
  void watch() MUSTER_EXCLUDES(mutex_);
  gradient_result push(const state_dict& gradients, state_dict& model) MUSTER_EXCLUDES(mutex_);
  bool pull(state_dict& model) const { return server_.pull(model); }
  void flush();

private:
  [[nodiscard]] bool is_primary() const { return own_ == how_.primary; }
  [[nodiscard]] bool is_secondary() const;
  [[nodiscard]] std::string name_of_primary() const { return name_ + "/primary"; }
  [[nodiscard]] std::string name_of(const std::string& secondary) const { return name_ + "/secondary/" + secondary; }
  [[nodiscard]] bool is_gone(const std::string& member) const;
  [[nodiscard]] std::vector<std::string> choose() MUSTER_EXCLUDES(mutex_);
  void flush_own();
  template <class Reducer>
  void close_own(const std::string& name, void (*close)(Reducer&));
  [[nodiscard]] std::optional<gradient_verdict> give_to_any(const state_dict& gradients) MUSTER_EXCLUDES(mutex_);
  void wait_for_secondary();
  [[nodiscard]] std::string find_untold_death() MUSTER_EXCLUDES(mutex_);
  void flush_now_and_then() MUSTER_EXCLUDES(mutex_);

  const rpc_group& group_;
  const std::string own_;
  const std::string name_;
  const gradient_options how_;
  const std::shared_ptr<versioned_store> values_;
  const model_server server_;
  const std::shared_ptr<failure_list> failures_ = std::make_shared<failure_list>();
  mutex mutex_;
  condition changed_;
  std::shared_ptr<learner> learner_ MUSTER_GUARDED_BY(mutex_);
  bool runs_ MUSTER_GUARDED_BY(mutex_) = false;
  std::set<std::pair<std::string, std::uint32_t>> told_
      MUSTER_GUARDED_BY(mutex_);  // incarnations of reducers whose deaths watch() has said
  std::mt19937_64 random_ MUSTER_GUARDED_BY(mutex_);
  std::thread flusher_;
};

}  // namespace muster::detail
