// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <muster/async/detail/future_source.hpp>
#include <muster/async/future.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/detail/kv_schedule.hpp>
#include <muster/params/detail/kv_sender.hpp>

namespace muster::detail {

/// A worker's asynchronous pushes and pulls. A thread of its own begins them, in the order of its schedule, and sends
/// pushes again whose owner has died.
///
/// Thread safety: safe.
class kv_async {
public:
  using puller = std::function<tensor(const store_key& key)>;

  kv_async(kv_sender& sender, puller pull, std::shared_ptr<future_home> home, std::size_t window,
           std::function<deadline()> end_of_call);
  kv_async(const kv_async&) = delete;
  kv_async& operator=(const kv_async&) = delete;
  /// Waits for all.
  ~kv_async();

  [[nodiscard]] future<void> push(const store_key& key, kv_gradient gradient, int priority) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] future<tensor> pull(const store_key& key, int priority) MUSTER_EXCLUDES(mutex_);
  /// Whether there were any operations.
  [[nodiscard]] bool is_used() const MUSTER_EXCLUDES(mutex_);

private:
  struct operation {
    store_key key;
    std::optional<kv_gradient> gradient{};  // of a push that has not begun
    std::shared_ptr<local_state<void>> pushed{};
    std::shared_ptr<local_state<tensor>> pulled{};
    std::optional<kv_sending> sending{};
  };
  struct ended {
    kv_schedule::number which;
    outcome<kv_answer> how;
  };

  void add(const store_key& key, int priority, operation what) MUSTER_EXCLUDES(mutex_);
  void run() MUSTER_EXCLUDES(mutex_);
  void begin(kv_schedule::number which, operation& what);
  void listen(kv_schedule::number which, operation& what);
  void judge(kv_schedule::number which, operation& what, outcome<kv_answer> how);
  void end(kv_schedule::number which) MUSTER_EXCLUDES(mutex_);
  void take(ended what) MUSTER_EXCLUDES(mutex_);

  kv_sender& sender_;
  const puller pull_;
  const std::shared_ptr<future_home> home_;
  const std::function<deadline()> end_of_call_;
  mutable mutex mutex_;
  condition changed_;
  kv_schedule schedule_ MUSTER_GUARDED_BY(mutex_);
  std::map<kv_schedule::number, operation> all_ MUSTER_GUARDED_BY(mutex_);
  std::deque<ended> ended_ MUSTER_GUARDED_BY(mutex_);
  bool closes_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_ MUSTER_GUARDED_BY(mutex_);  // from the first operation on
};

}  // namespace muster::detail
