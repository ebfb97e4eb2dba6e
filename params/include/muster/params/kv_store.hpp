// SPDX-License-Identifier: BSL-1.0
#pragma once

// A key-value store as MXNet has it: workers push gradients, and pull the values that an updater or a rule makes of
// them.
//
//     muster::kv_ticket ticket(muster::kv_kind::sync, {.workers = 4});   // the program; goes to the workers
//     muster::kv_store kv(ticket, rank);                                 // each worker
//     kv.init("w", weights);                                             // rank 0's counts
//     kv.set_optimizer(muster::sgd{.rate = 0.1});
//     kv.push("w", gradient);                                            // returns when all workers' have been applied
//     muster::tensor now = kv.pull("w");

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <muster/parallel/rules.hpp>
#include <muster/params/detail/kv_updater.hpp>
#include <muster/params/kv_kind.hpp>
#include <muster/params/kv_ticket.hpp>
#include <muster/params/store.hpp>
#include <muster/params/store_key.hpp>
#include <muster/serialize/callable.hpp>

namespace muster {

class tensor;

namespace detail {

class kv_core;

}  // namespace detail

/// A worker's part of a key-value store, or an owner's. There are no server processes: those that take part own the
/// keys, and sum the pushes.
///
/// **Rounds.** Of kind sync a push returns when those of all workers that are there have been summed, in the order of
/// ranks, and applied: the same bits in every run. When a worker dies before its push, the round has no effect, and
/// each other's push of it throws worker_lost once; the next round is of those that are left. Of kind async each push
/// is applied as it comes. What is applied: an updater or a rule, where one was set; else the value becomes the sum
/// (sync), or what was pushed.
/// **Deaths.** When the owner of a key dies another one goes on from what is in the store, states of rules included.
/// Errors: errc::invalid_argument for a key that is not there, a dtype or shape that is not the value's, and a key that
/// is initialized twice; errc::timed_out after kv_options::timeout; what an updater throws.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: any process may be killed at any instruction.
class kv_store {
public:
  /// Takes part, as that rank: one behind the workers' only owns keys. Throws as rpc_group.
  kv_store(const kv_ticket& ticket, std::size_t rank);
  /// One for this process alone, of kind local.
  explicit kv_store(kv_kind kind);
  kv_store(const kv_store&) = delete;
  kv_store& operator=(const kv_store&) = delete;
  /// Leaves: others do not wait for this worker any more.
  ~kv_store();

  [[nodiscard]] std::size_t rank() const noexcept;  ///< of this worker
  [[nodiscard]] std::size_t size() const noexcept;  ///< how many workers there are
  [[nodiscard]] kv_kind kind() const noexcept;      ///< how pushes become values
  /// Returns the ranks of the workers that are there now, in their order.
  [[nodiscard]] std::vector<std::size_t> living() const;

  /// Makes a value, which is copied. All workers call it, with the same keys; rank 0's values count. Returns when they
  /// are there. A worker that has joined under a dead one's rank finds them, and changes nothing.
  void init(const store_key& key, const tensor& value) const;
  /// Pushes a gradient, and waits until it has been applied; it is read where it lies until then.
  void push(const store_key& key, const tensor& value) const;
  /// The sum of several, as of several devices.
  void push(const store_key& key, const std::vector<tensor>& values) const;
  /// Several keys: all wait together.
  void push(const std::vector<store_key>& keys, const std::vector<tensor>& values) const;
  /// Returns the newest value, without a copy.
  [[nodiscard]] tensor pull(const store_key& key) const;
  /// Copies it.
  void pull(const store_key& key, const tensor& to) const;
  /// Pushes, and returns the value that this has led to.
  [[nodiscard]] tensor push_pull(const store_key& key, const tensor& value) const;
  /// init(), and returns the value.
  [[nodiscard]] tensor broadcast(const store_key& key, const tensor& value) const;

  /// Has pushes applied by a rule. All workers may call it: equal ones change nothing; another begins with new states.
  void set_optimizer(const update_rule& rule) const;
  /// Has pushes applied by `f(key, input, stored)`, which changes `stored`: any callable that can be sent. It runs at
  /// the owner of the key. What it throws fails the push, and the value stays.
  template <class F>
  void set_updater(F f) const;
  /// Waits for all workers that have not left. Throws errc::peer_lost when one is dead, errc::timed_out with those that
  /// have not come.
  void barrier(std::chrono::nanoseconds timeout = {}) const;
  /// Returns the store that has the values. Its further keys begin with the byte 1, and are the library's.
  [[nodiscard]] const store& values() const noexcept;
  /// Serves as an owner until all workers have left.
  void run() const;

private:
  std::shared_ptr<detail::kv_core> core_;
};

}  // namespace muster

#include <muster/params/detail/kv_access.hpp>
