// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include <muster/params/detail/kv_gradient.hpp>
#include <muster/params/detail/kv_round.hpp>
#include <muster/params/detail/kv_updater.hpp>
#include <muster/params/detail/kv_values.hpp>
#include <muster/params/kv_ticket.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

/// What has become of a push.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_answer {
  enum class verdict : std::uint8_t {
    applied,        ///< it has counted: that version of the value has it
    failed,         ///< its round had no effect
    lacks_updater,  ///< the owner has not the updater that all are to use
    no_owner        ///< the key has another owner
  };

  verdict what = verdict::applied;
  std::uint64_t version = 0;
  bool is_loss = false;  ///< of one that failed: because a worker has died
  std::string why{};     ///< … and the reason

  template <class Archive>
  void serialize(Archive& archive) {
    archive(what, version, is_loss, why);
  }
};

/// How a push is answered, once. `failure`: what an updater threw; null: none.
using kv_reply = std::function<void(const kv_answer& answer, const error_info* failure)>;

/// A push that has come to an owner.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_push {
  std::size_t rank = 0;
  std::uint64_t number = 0;  ///< of the worker's pushes of the key
  kv_gradient gradient{};
};

/// Of an owner that leaves: it cannot tell any more which workers are there.
struct owner_leaves : std::exception {};

/// The part of a key-value store that owns keys: it takes pushes, and answers each when it has counted, or cannot count
/// any more. All that matters afterwards is in the store: another owner goes on from there when this one dies.
///
/// Thread safety: belongs to one thread at a time (a remote value's line).
class kv_owner {
public:
  /// What it knows of the workers, by rank.
  using worker_list = std::function<std::vector<kv_worker>()>;

  /// Runs a command of the program's; false where it has set no function for that.
  using command_runner = std::function<bool(int head, const std::string& body)>;

  /// `self`: as the store names it.
  kv_owner(kv_values values, const kv_ownership& self, kv_kind kind, const kv_options& how, worker_list workers,
           command_runner command)
      : values_(std::move(values)),
        self_(self),
        kind_(kind),
        how_(how),
        workers_(std::move(workers)),
        command_(std::move(command)) {}

  /// Throws errc::invalid_argument, with key and worker, for what does not fit the value.
  void push(const store_key& key, kv_push what, kv_reply reply);
  /// Takes a push back that has not counted yet. Returns what has become of it.
  [[nodiscard]] kv_answer withdraw(const store_key& key, std::size_t rank, std::uint64_t number);
  /// A worker has died, left, or joined.
  void look_at_workers();
  [[nodiscard]] bool run_command(int head, const std::string& body) const { return command_(head, body); }
  /// `mark`: which updater of the store's it is.
  void set_updater(kv_updater by, std::uint64_t mark);
  /// What rounds wait for, for people: empty where none does.
  [[nodiscard]] std::string describe_rounds() const;

private:
  struct waiting {
    kv_push what;
    kv_reply reply;
  };
  struct state {
    kv_round round;
    std::uint64_t version = 0;               // of the record, in the store
    std::map<std::size_t, waiting> given{};  // those of the round, by rank
    std::list<waiting> others{};             // that came too early
  };

  [[nodiscard]] bool lacks_updater();
  [[nodiscard]] state& state_of(const store_key& key);
  void settle(const store_key& key, state& of);
  void settle_once(const store_key& key, state& of, bool& goes_on);
  bool sort_one(const store_key& key, state& of, waiting& one, const std::vector<kv_worker>& workers);
  bool apply_alone(const store_key& key, state& of, waiting& one, const std::vector<kv_worker>& workers);
  void apply_round(const store_key& key, state& of, const std::vector<kv_worker>& workers);
  void fail_round(const store_key& key, state& of, const std::vector<kv_worker>& workers, const kv_answer& why,
                  const error_info* failure);
  void note(const store_key& key, state& of, kv_record record);
  void fail_all(state& of, const error_info& why) noexcept;
  void give_up(state& of);
  void reload(const store_key& key, state& of);

  kv_values values_;
  kv_ownership self_;
  kv_kind kind_;
  kv_options how_;
  worker_list workers_;
  command_runner command_;
  kv_updater updater_;
  std::uint64_t updater_mark_ = 0;
  std::map<store_key, state> states_;
};

}  // namespace muster::detail
