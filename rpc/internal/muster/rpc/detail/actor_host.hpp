// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/detail/message_ring.hpp>
#include <muster/rpc/actor_options.hpp>
#include <muster/rpc/detail/actor_start.hpp>

namespace muster::detail {

class rpc_core;

/// An actor, at the program's member that has started it: its process, which is started anew when it dies, until
/// nothing refers to it any more.
///
/// Thread safety: safe. Lifetime: borrows the core until join() has returned.
class actor_host : public std::enable_shared_from_this<actor_host> {
public:
  /// `rings`: of its line, where they are its own.
  actor_host(rpc_core& core, std::size_t member, actor_role role, const actor_options& how, actor_launcher launch,
             std::vector<std::shared_ptr<message_ring>> rings);
  actor_host(const actor_host&) = delete;
  actor_host& operator=(const actor_host&) = delete;
  ~actor_host();

  [[nodiscard]] std::size_t member() const noexcept { return member_; }
  [[nodiscard]] std::uint64_t object() const noexcept { return role_.object; }
  [[nodiscard]] bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }
  /// Whether nothing refers to it any more.
  [[nodiscard]] bool is_ending() const MUSTER_EXCLUDES(mutex_);
  /// Starts its process, and waits until that has joined. Throws what the object's constructor throws.
  void start() MUSTER_EXCLUDES(mutex_);
  /// Asks the process to end, and has it killed when it does not. Does not wait. Again: nothing.
  void end() noexcept MUSTER_EXCLUDES(mutex_);
  /// Waits until it is over. Requires: end(), or is_over(). Not by two threads at once.
  void join() noexcept MUSTER_EXCLUDES(mutex_);

private:
  using process_ptr = std::shared_ptr<process>;

  [[nodiscard]] process_ptr launch() const;
  [[nodiscard]] process_ptr current() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool has_joined() const noexcept;
  void watch() noexcept;
  [[nodiscard]] bool restart(const process& ended) MUSTER_EXCLUDES(mutex_);
  void end_within_grace(const process& which) const noexcept;

  rpc_core& core_;
  const std::size_t member_;
  const actor_role role_;
  const actor_options how_;
  const actor_launcher launch_;
  const std::vector<std::shared_ptr<message_ring>> rings_;
  const std::uint32_t incarnation_;  // of the name, before
  std::atomic<bool> over_ = false;
  mutable mutex mutex_;
  bool ending_ MUSTER_GUARDED_BY(mutex_) = false;
  unsigned restarts_left_ MUSTER_GUARDED_BY(mutex_);
  process_ptr process_ MUSTER_GUARDED_BY(mutex_);
  std::thread watcher_ MUSTER_GUARDED_BY(mutex_);
  std::thread ender_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
