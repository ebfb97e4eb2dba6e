// SPDX-License-Identifier: BSL-1.0
#include "train.hpp"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include <muster/base/error.hpp>

#include "model.hpp"

namespace digits {

// ---- which rows

muster::row_selection batch_order::next() {
  if (used_ == round_.size()) {
    round_ = muster::batches(rows_, batch_, seed_++);
    used_ = 0;
  }
  return round_[used_++];
}

// ---- in the ranks

namespace {

std::size_t count_right(const tensor& guesses, const tensor& labels) {
  const auto found = guesses.span<const std::int32_t>();
  const auto expected = labels.span<const std::int32_t>();
  return std::inner_product(found.begin(), found.end(), expected.begin(), std::size_t{0}, std::plus<>(),
                            [](auto a, auto b) -> std::size_t { return a == b ? 1 : 0; });
}

}  // namespace

trainer::trainer(const settings& how, samples train)
    : how_(how),
      train_(std::move(train)),
      order_(train_.count(), how.batch, how.seed),
      world_({.ranks = how.ranks, .name = "digits"}) {
  const bool is_network = how.model == model_kind::network;
  const auto begin_with = is_network ? network_weights(how.hidden, how.seed) : softmax_weights();
  for (const auto& each : begin_with) {
    variables_.push_back(world_.replicate("weights " + std::to_string(variables_.size() + 1), each));
  }
  const auto& with = variables_;
  if (is_network) {
    learn_with(network_gradients, network_guesses, with[0], with[1], with[2], with[3]);
  } else {
    learn_with(softmax_gradients, softmax_guesses, with[0], with[1]);
  }
}

template <class Gradients, class Guesses, class... Variables>
void trainer::learn_with(Gradients gradients, Guesses guesses, const Variables&... variables) {
  using namespace muster;
  const sgd rule{.rate = how_.rate, .momentum = how_.momentum};
  step_ = [this, f = world_.function(gradients, rows("images", "labels"), replicas(variables...),
                                     outputs(avg("loss"), sum("right")), updates(reduced_into(variables, avg, rule)...),
                                     named("step"))](const run_options& options) {
    const auto [loss, right] = f.with(options)(train_.images, train_.labels);
    return score{.loss = loss, .right = static_cast<std::size_t>(right), .rows = options.batch.list().size()};
  };
  test_ = [f = world_.function(guesses, rows("images", "labels"), replicas(variables...),
                               outputs(avg("loss"), gather("guesses")), named("test"))](const samples& on) {
    auto [loss, found] = f(on.images, on.labels);
    const score all{.loss = loss, .right = count_right(found, on.labels), .rows = on.count()};
    return test_result{.all = all, .guesses = std::move(found)};
  };
}

template <class Call>
auto trainer::repeat_after_deaths(const Call& call) {
  constexpr int most_tries = 100;
  for (int tries = 1;; ++tries, ++repeated_) {
    try {
      return call();
    } catch (const muster::error& failure) {
      if (failure.code() != muster::errc::worker_died || tries == most_tries) throw;
    }
  }
}

score trainer::step() {
  const muster::run_options options{.batch = order_.next(), .num_slices = how_.slices};
  return repeat_after_deaths([&] { return step_(options); });
}

test_result trainer::test(const samples& on) {
  return repeat_after_deaths([&] { return test_(on); });
}

// ---- the weights

std::vector<tensor> trainer::weights(std::size_t rank) const {
  std::vector<tensor> found;
  found.reserve(variables_.size());
  for (const auto& each : variables_) found.push_back(world_.get_value(rank, each));
  return found;
}

bool trainer::replicas_are_the_same() const {
  const auto first = weights();
  for (std::size_t rank = 1; rank < world_.ranks(); ++rank) {
    if (!same_bits(first, weights(rank))) return false;
  }
  return true;
}

bool same_bits(const std::vector<tensor>& a, const std::vector<tensor>& b) {
  return std::ranges::equal(a, b, [](const tensor& left, const tensor& right) {
    return std::ranges::equal(std::as_bytes(left.span<const float>()), std::as_bytes(right.span<const float>()));
  });
}

}  // namespace digits
