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
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/parallel/rules.hpp>
#include <muster/params/detail/kv_updater.hpp>
#include <muster/params/gradient_compression.hpp>
#include <muster/params/kv_kind.hpp>
#include <muster/params/kv_ticket.hpp>
#include <muster/params/store.hpp>
#include <muster/params/store_key.hpp>
#include <muster/serialize/callable.hpp>
#include <muster/serialize/transfer.hpp>

namespace muster {

class tensor;
struct sparse_rows;

namespace detail {

class kv_core;

}  // namespace detail

/// How an asynchronous operation is made.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_async_options {
  int priority = 0;  ///< among this worker's operations that wait, of other keys: higher ones begin first
  /// Of a push: with transfer::copy the tensor may be changed as soon as it returns.
  muster::transfer transfer = muster::transfer::reference;
};

/// A worker's part of a key-value store, or an owner's. There are no server processes: those that take part own the
/// keys, and sum the pushes.
///
/// **Rounds.** Of kind sync a push returns when those of all workers that are there have been summed, in the order of
/// ranks, and applied: the same bits in every run. Each worker's push of a key counts in one round; its next one waits
/// for that. When a worker dies before its push, the round has no effect, and each other's push of it, or its next one,
/// throws errc::peer_lost once; further rounds are of those that are left. With kv_options::enough a round is complete
/// with so many pushes; a worker that was too late for one has its next push dropped, and is with the others again. Of
/// kind async each push is applied as it comes. What is applied: the updater or the rule that was set last; else the
/// value becomes the sum of the round (sync), or what was pushed.
/// **Workers push the same keys in the same order**, or in lists, or by push_async, up to kv_options::window keys at
/// once: else they wait for one another. A push that is not applied in time is taken back, where its owner answers.
/// **Deaths.** When the owner of a key dies another one goes on from what is in the store, states of rules included; a
/// push counts once, also one that is sent again. A rank whose process has died can be joined anew.
/// Errors: errc::invalid_argument for a key that is not there, a dtype or shape that is not the value's, and a key that
/// is initialized twice; errc::timed_out after kv_options::timeout (set_timeout), with the rounds that are open, and
/// the workers that they wait for; what an updater throws, which all workers of the round get, and the value stays.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: any process may be killed at any instruction.
/// Visibility: a pull finds what each push of this worker has led to that has returned, or whose future is ready.
class kv_store {
public:
  /// Takes part, as that rank: one behind the workers' only owns keys. Throws as rpc_group.
  kv_store(const kv_ticket& ticket, std::size_t rank);
  /// One for this process alone, of kind local or device: the program's. A worker gets a ticket of such a kind. Throws
  /// errc::invalid_argument in a worker, and for other kinds.
  explicit kv_store(kv_kind kind);
  kv_store(const kv_store&) = delete;
  kv_store& operator=(const kv_store&) = delete;
  /// Waits for asynchronous operations, and leaves: others do not wait for this worker any more.
  ~kv_store();

  [[nodiscard]] std::size_t rank() const noexcept;  ///< of this worker
  [[nodiscard]] std::size_t size() const noexcept;  ///< how many workers there are
  [[nodiscard]] kv_kind kind() const noexcept;      ///< how pushes become values
  /// Returns the ranks of the workers that are there now, in their order.
  [[nodiscard]] std::vector<std::size_t> living() const;

  /// Makes a value, which is copied: to the host; of kind device, to the GPU on which it lies, where pushes are applied
  /// to it, and pulls find it, until this object ends: call values() or save() before. All workers call it, with the
  /// same keys; rank 0's values count. Returns when they are there. A worker that has joined under a dead one's rank
  /// finds them, and changes nothing.
  ///@{
  void init(const store_key& key, const tensor& value) const;
  void init(const std::vector<store_key>& keys, const std::vector<tensor>& values) const;
  ///@}
  /// Pushes a gradient, and waits until it has been applied; it is read where it lies until then, or, where the value
  /// lies elsewhere, copied there. Several are summed on the device of the first one before.
  void push(const store_key& key, const tensor& value) const;
  /// The sum of several, as of several devices.
  void push(const store_key& key, const std::vector<tensor>& values) const;
  /// Of some rows. Where all workers' pushes of a round are so, no other row of the value changes, nor what the rule
  /// remembers of it.
  template <std::same_as<sparse_rows> Rows>  // so that {a, b} are two tensors
  void push(const store_key& key, const Rows& value) const {
    push_rows(key, value);
  }
  /// Several keys: all wait together. What a key is given for twice is summed.
  void push(const std::vector<store_key>& keys, const std::vector<tensor>& values) const;
  /// Pushes without waiting: the tensor is not to be changed until the future is ready. This worker's operations of a
  /// key are made in their order; those of different keys overtake one another.
  [[nodiscard]] future<void> push_async(const store_key& key, const tensor& value,
                                        const kv_async_options& how = {}) const;
  /// Returns the newest value, where it lies, without a copy; it is read-only (tensor::is_read_only).
  [[nodiscard]] tensor pull(const store_key& key) const;
  /// Returns the newest values, as they were at one moment.
  [[nodiscard]] std::vector<tensor> pull(const std::vector<store_key>& keys) const;
  /// Copies it into tensors of its dtype and shape, which may lie elsewhere.
  ///@{
  void pull(const store_key& key, const tensor& to) const;
  void pull(const store_key& key, const std::vector<tensor>& to) const;
  ///@}
  /// Pulls behind this worker's asynchronous operations of the key.
  [[nodiscard]] future<tensor> pull_async(const store_key& key, const kv_async_options& how = {}) const;
  /// Returns copies of some rows, in any order, and given several times or not at all.
  [[nodiscard]] sparse_rows row_sparse_pull(const store_key& key, std::span<const std::int64_t> rows) const;
  /// Pushes, and returns the value that this has led to, or a later one.
  [[nodiscard]] tensor push_pull(const store_key& key, const tensor& value) const;
  /// init(), and returns the value.
  [[nodiscard]] tensor broadcast(const store_key& key, const tensor& value) const;

  /// Has pushes applied by a rule. All workers may call it: equal ones change nothing. One of the same kind with other
  /// numbers, as a rate that falls, goes on with what that remembers; another kind begins anew.
  void set_optimizer(const update_rule& rule) const;
  /// Has pushes applied by `f(key, input, stored)`, which changes `stored`: any callable that can be sent. It runs at
  /// the owner of the key. All workers call it, with the same one.
  template <class F>
  void set_updater(F f) const;
  /// Has this worker's gradients sent as bits, and what that loses added to the next one. Values are never compressed,
  /// nor are rows. What was lost until then is lost when another compression is set, or none.
  void set_gradient_compression(const gradient_compression& how) const;
  /// Waits for all workers that have not left. Throws errc::peer_lost when one is dead, errc::timed_out with those that
  /// have not come.
  void barrier(std::chrono::nanoseconds timeout = {}) const;
  /// Sets how long this worker's calls wait from now on, instead of kv_options::timeout. Throws errc::invalid_argument
  /// unless it is positive.
  void set_timeout(std::chrono::nanoseconds timeout) const;
  /// Runs `f(head, body)` for each command from now on, while this process owns keys. It stays in this process, and
  /// holds up the pushes of keys that it owns.
  void on_command(std::function<void(int head, std::string body)> f) const;
  /// Sends a command to all that own keys. Returns when all have run it; throws what one throws, and
  /// errc::invalid_argument, with its name, for one without on_command.
  void send_command(int head, const std::string& body) const;
  /// Writes all values, as they were at one moment, with what the rule remembers of them and how often it has been
  /// applied, in the format safetensors; by any worker, also one that owns none of the keys. Throws as store::save.
  void save(const std::string& path) const;
  /// Goes on from such a file: values, and states of the rule, which is to be set before, become the newest at one
  /// moment; values that are not there are initialized. One worker calls it, and the others push behind a barrier: a
  /// round that is open goes on from what the file has. Throws as store::load; errc::invalid_argument for a value of
  /// another dtype or shape, and for states of another rule than is set.
  void load(const std::string& path) const;
  /// Returns the store that has the values; those that lie on GPUs (kv_kind::device) are copied there by this call, as
  /// new versions, and by no push. Its further keys begin with the byte 1, and are the library's. Throws, of kind
  /// device, as store::push_all.
  [[nodiscard]] const store& values() const;
  /// Serves as an owner until all workers have left.
  void run() const;

private:
  void push_rows(const store_key& key, const sparse_rows& value) const;

  std::unique_ptr<detail::kv_core> core_;
};

}  // namespace muster

#include <muster/params/detail/kv_access.hpp>
