// SPDX-License-Identifier: BSL-1.0
#pragma once

// A model that learns in all ranks of a world: each has a replica of the weights and computes the gradients of its part
// of a batch, and all apply their mean, so that the replicas stay the same.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <muster/parallel/batches.hpp>
#include <muster/parallel/world.hpp>

#include "data.hpp"

namespace digits {

enum class model_kind { softmax, network };

struct settings {
  model_kind model = model_kind::network;
  std::size_t hidden = 64;  ///< of the network
  unsigned ranks = 0;       ///< 0: as many as there are processors
  unsigned slices = 1;
  std::size_t batch = 256;
  double rate = 0.2;
  double momentum = 0.9;
  std::uint64_t seed = 1;
};

/// What a step or a test found.
struct score {
  double loss = 0;
  std::size_t right = 0;
  std::size_t rows = 0;

  [[nodiscard]] double accuracy() const { return static_cast<double>(right) / static_cast<double>(rows); }
};

struct test_result {
  score all;
  muster::tensor guesses;  ///< i32, (n)
};

/// Batches of rows: all of them in a random order, then again in another; the last of a round may be smaller.
class batch_order {
public:
  batch_order(std::size_t rows, std::size_t batch, std::uint64_t seed) : rows_(rows), batch_(batch), seed_(seed) {}

  [[nodiscard]] muster::row_selection next();
  [[nodiscard]] std::size_t per_round() const noexcept { return rows_ / batch_ + (rows_ % batch_ != 0 ? 1 : 0); }

private:
  const std::size_t rows_;
  const std::size_t batch_;
  std::uint64_t seed_;
  std::vector<muster::row_selection> round_;
  std::size_t used_ = 0;
};

/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class trainer {
public:
  /// Starts the ranks. Throws what muster::world throws.
  trainer(const settings& how, samples train);

  /// One step with the next batch. When a rank dies in it, it is made again, up to 99 times: of a step that failed
  /// nothing has happened.
  score step();
  [[nodiscard]] std::size_t steps_per_epoch() const noexcept { return order_.per_round(); }
  [[nodiscard]] test_result test(const samples& on);

  /// The weights that a rank has.
  [[nodiscard]] std::vector<muster::tensor> weights(std::size_t rank = 0) const;
  /// Whether all ranks have the same weights, bit for bit.
  [[nodiscard]] bool replicas_are_the_same() const;
  /// How often something was made again.
  [[nodiscard]] std::size_t repeated() const noexcept { return repeated_; }
  [[nodiscard]] const muster::world& world() const noexcept { return world_; }

private:
  template <class Gradients, class Guesses, class... Variables>
  void learn_with(Gradients gradients, Guesses guesses, const Variables&... variables);
  template <class Call>
  auto repeat_after_deaths(const Call& call);

  const settings how_;
  const samples train_;
  batch_order order_;
  muster::world world_;
  std::vector<muster::variable> variables_;
  std::function<score(const muster::run_options&)> step_;
  std::function<test_result(const samples&)> test_;
  std::size_t repeated_ = 0;
};

/// Whether two lists of tensors have the same bits.
[[nodiscard]] bool same_bits(const std::vector<muster::tensor>& a, const std::vector<muster::tensor>& b);

}  // namespace digits
