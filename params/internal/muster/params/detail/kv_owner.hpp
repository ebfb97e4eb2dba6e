// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/parallel/rules.hpp>
#include <muster/params/detail/kv_updater.hpp>
#include <muster/params/kv_ticket.hpp>
#include <muster/params/store.hpp>
#include <muster/rpc/rpc_status.hpp>

namespace muster::detail {

/// What an owner says to a push.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_answer {
  enum class verdict : std::uint32_t {
    taken,    ///< it counts, or will when the others' are there: in that version of the value
    failed,   ///< its round had no effect: that failure of the key says why
    leaving,  ///< nothing: the owner leaves, or is not there any more
    ahead     ///< its worker is too far ahead of others: again, when the value has a higher version than that
  };

  verdict what = verdict::taken;
  std::uint64_t version = 0;
  std::uint64_t failure = 0;  ///< of a taken one: that which would tell that it has failed
};

/// Why a round had no effect.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_failure {
  bool is_loss = false;  ///< of a worker; else of an updater
  std::string why;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(is_loss, why);
  }
};

/// The part of a key-value store that owns keys: it takes pushes, sums those of a round in the order of ranks, applies
/// updater or rule, and makes the next version. All that matters afterwards is in the store: another owner goes on from
/// there when this one dies.
///
/// Thread safety: belongs to one thread at a time (a remote value's line).
class kv_owner {
public:
  /// What it knows of the workers.
  using state_of_rank = std::function<member_state(std::size_t rank)>;

  kv_owner(store values, kv_kind kind, const kv_options& how, state_of_rank workers)
      : values_(std::move(values)), kind_(kind), how_(how), state_of_(std::move(workers)) {}

  /// A push of that worker, its `count`-th of the key. Throws errc::invalid_argument, with key and worker, for what
  /// does not fit the value.
  [[nodiscard]] kv_answer push(const store_key& key, std::size_t rank, std::uint64_t count, const tensor& gradient);
  /// A worker has died, left, or joined.
  void look_at_workers();
  void set_updater(kv_updater by) { updater_ = std::move(by); }

private:
  struct round {
    std::map<std::size_t, tensor> given;  // by rank
    std::set<std::size_t> told_later;     // that its last one has failed
  };

  [[nodiscard]] kv_answer push_alone(const store_key& key, std::size_t rank, std::uint64_t count, const tensor& value);
  [[nodiscard]] bool is_ahead(const std::vector<std::uint64_t>& counts, std::size_t rank) const;
  [[nodiscard]] bool is_missing(std::size_t rank) const;
  void try_to_end(const store_key& key, round& of);
  void fail(const store_key& key, round& of, const kv_failure& why);
  void apply(const store_key& key, const std::vector<tensor>& gradients, const std::vector<std::uint64_t>* counts);
  [[nodiscard]] std::vector<tensor> states_of(const store_key& key, const tensor& value) const;

  store values_;
  kv_kind kind_;
  kv_options how_;
  state_of_rank state_of_;
  kv_updater updater_;
  std::map<store_key, round> rounds_;
  std::set<std::size_t> lost_;  // workers whose deaths were looked at
};

}  // namespace muster::detail
