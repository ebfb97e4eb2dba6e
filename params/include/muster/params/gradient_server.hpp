// SPDX-License-Identifier: BSL-1.0
#pragma once

// A model that learns from the gradients of many: Machin's PushPullGradServer.
//
//     auto values = std::make_shared<muster::ordered_server>(box, "values");
//     muster::gradient_server server(group, values, "server", {.primary = "p", .secondaries = {"s", "p"}});
//     server.manage(model, muster::sgd{.rate = 0.1});   // the primary
//     server.start();                                   // the primary and each secondary
//     server.push(gradients, model);                    // any member: then model is the newest one

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/parallel/rules.hpp>
#include <muster/params/state_dict.hpp>
#include <muster/params/versioned_store.hpp>
#include <muster/rpc/rpc_group.hpp>

namespace muster {

namespace detail {

class gradient_core;

}  // namespace detail

/// What reducers make of gradients.
enum class gradient_reduction : std::uint8_t {
  mean,  ///< their sum, divided by how many they are
  sum    ///< their sum
};

/// How a gradient server is made: the same for all that take part.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct gradient_options {
  std::string model = "model";                             ///< under which name the model is kept
  std::string primary{};                                   ///< the member that has it; empty: the first one
  std::vector<std::string> secondaries{};                  ///< members that take gradients; empty: all
  std::size_t batch = 4;                                   ///< how many a reducer puts together, each of both kinds
  gradient_reduction reduction = gradient_reduction::sum;  ///< what of them is applied
  std::optional<std::uint64_t> staleness{};                ///< how many steps a gradient's model may be behind
  std::chrono::nanoseconds flush_after{};                  ///< flush() at such times; 0: never
};

/// What became of a push of gradients.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct gradient_result {
  bool counted = false;  ///< whether the gradients count; else they were of too old a model
  bool pulled = false;   ///< whether there is a model
};

/// Gradients go to secondary reducers, members of an RPC group, which add up `batch` of them each; their sums go to the
/// primary one, which adds up `batch` of those, and makes a step of its rule: so a step is of batch² gradients, as in
/// Machin. Sums go with how many they are of, so that a mean is of all gradients, also after flush().
///
/// A reducer adds up what comes at once, so that nothing waits, and pushes are slowed down by what it can do.
/// **Deaths.** What a secondary has added up and not passed on dies with it; watch() says so, and pushes go to others.
/// Errors: errc::invalid_argument for a member that the group has not, gradients that are not like the model, and
/// calls at a member that is not the reducer it takes; errc::peer_lost where no secondary is there.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: any member may be killed at any instruction.
class gradient_server {
public:
  /// Of members of that group, which outlives it; the models are kept in `values`, which all have.
  gradient_server(const rpc_group& group, std::shared_ptr<versioned_store> values, std::string name,
                  const gradient_options& how = {});
  gradient_server(const gradient_server&) = delete;
  gradient_server& operator=(const gradient_server&) = delete;
  /// stop().
  ~gradient_server();

  /// At the primary, before start(): has that model, which is copied and published, learn by a rule; `rate(step)`, if
  /// it is given, is the rate of the step of that number, from 1 on.
  void manage(const state_dict& model, const update_rule& rule, std::function<double(std::uint64_t step)> rate = {});
  /// Begins to reduce, at a reducer. Again after stop().
  void start();
  /// Ends that; what was added up and not passed on is passed on first.
  void stop();
  /// Throws what has failed here: a step, or the way to the primary; and errc::peer_lost when a reducer has died, once
  /// for each, with what may be lost by that.
  void watch();

  /// Gives gradients to a secondary, and pulls the newest model. Returns whether they count. The gradients are of
  /// `model`, with its names, dtypes and shapes. Throws member_lost when the secondary dies while it takes them: then
  /// it is not known whether they count.
  gradient_result push(const state_dict& gradients, state_dict& model) const;
  /// Copies the newest model, if it is newer than this one. Returns false where there is none.
  bool pull(state_dict& model) const;
  /// Has all that was pushed before applied, also where batches are not full. Returns when it is.
  void flush() const;

private:
  std::unique_ptr<detail::gradient_core> core_;
};

}  // namespace muster
