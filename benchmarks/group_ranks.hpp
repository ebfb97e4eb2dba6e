// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <muster/collectives/group.hpp>
#include <muster/pool/ctx_pool.hpp>

#include "rank_command.hpp"

namespace bench {

/// A rank of a group, once it has joined, and its tensors.
class group_rank {
public:
  void join(const muster::group_ticket& ticket, std::size_t rank) { group_.emplace(ticket, rank); }

  [[nodiscard]] std::size_t rank() const { return group_->rank(); }
  [[nodiscard]] std::size_t size() const { return group_->size(); }
  [[nodiscard]] std::span<float> input() const { return input_.span<float>(); }
  [[nodiscard]] std::span<float> output() const { return output_.span<float>(); }

  void give_room(const rank_command& what);
  void perform(rank_operation which);

private:
  std::optional<muster::group> group_;
  muster::tensor input_;
  muster::tensor part_;  // of the input: this rank's
  muster::tensor output_;
};

/// The ranks of a group of ours: workers of a pool, each bound to the processor of its number.
class group_ranks {
public:
  explicit group_ranks(std::size_t ranks);

  /// How long it took rank 0.
  std::chrono::nanoseconds run(const rank_command& what);
  /// How long each took rank 0, in ns.
  std::vector<double> run_singly(const rank_command& what);

private:
  muster::ctx_pool<group_rank> workers_;
};

}  // namespace bench
