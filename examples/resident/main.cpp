// SPDX-License-Identifier: BSL-1.0
// Training on rows that stay where they are computed with: each rank has its own, and a step says only which of them it
// takes. The same training with rows that are given with each call ends with the same weights; f.profile() shows what
// each of them moved.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <random>
#include <string_view>
#include <tuple>
#include <vector>

#include <muster/parallel/world.hpp>

namespace {

using muster::tensor;

constexpr std::size_t features = 16;
constexpr std::size_t rows_of_each = 5000;
constexpr std::size_t batch_of_each = 64;
constexpr std::size_t most_ranks = 256;  // of a world
constexpr std::size_t most_steps = 1'000'000;

/// Of a linear model: the mean squared error, and its gradient by the weights.
std::tuple<double, tensor> loss_and_gradient(const tensor& x, const tensor& y, const tensor& weights) {
  const auto rows = x.view<float, 2>();
  const auto wanted = y.span<float>();
  const auto w = weights.span<float>();
  auto gradient = tensor::zeros<float>({features});
  const auto sums = gradient.span<float>();
  double loss = 0;
  for (std::size_t row = 0; row < x.rows(); ++row) {
    float error = -wanted[row];
    for (std::size_t index = 0; index < features; ++index) error += w[index] * rows(row, index);
    for (std::size_t index = 0; index < features; ++index) sums[index] += 2 * error * rows(row, index);
    loss += static_cast<double>(error) * static_cast<double>(error);
  }
  const auto count = static_cast<double>(std::max<std::size_t>(x.rows(), 1));
  for (auto& each : sums) each /= static_cast<float>(count);
  return {loss / count, gradient};
}

struct samples {
  tensor x;
  tensor y;
};

/// Rows of random numbers, and what weights of 0, 1, 2 and so on make of them.
samples make_samples(std::size_t rows) {
  samples made{.x = tensor::empty(muster::dtype::f32, {rows, features}), .y = tensor::zeros<float>({rows})};
  std::mt19937 random(1);
  const auto x = made.x.view<float, 2>();
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t index = 0; index < features; ++index) {
      x(row, index) = static_cast<float>(random()) / static_cast<float>(std::mt19937::max()) - 0.5F;
      made.y.at<float>(row) += static_cast<float>(index) * x(row, index);
    }
  }
  return made;
}

/// A list of rows of its own for each rank.
std::vector<muster::row_selection> chosen_by_rank(std::size_t ranks, std::mt19937& random) {
  std::vector<muster::row_selection> made;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::size_t> list(batch_of_each);
    for (auto& each : list) each = random() % rows_of_each;
    made.emplace_back(list);
  }
  return made;
}

/// The same rows, as they are numbered in all of the data.
std::vector<std::int64_t> chosen_of_all(const std::vector<muster::row_selection>& by_rank) {
  std::vector<std::int64_t> made;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const auto each : by_rank[rank].list()) made.push_back(each + static_cast<std::int64_t>(rank * rows_of_each));
  }
  return made;
}

/// Ends the program for what is no number from 1 to `most`.
std::size_t number_of(std::string_view what, std::string_view given, std::size_t most) {
  std::size_t number = 0;
  const auto* const end = given.data() + given.size();
  const auto [last, failure] = std::from_chars(given.data(), end, number);
  if (failure != std::errc() || last != end || number == 0 || number > most) {
    std::cerr << "usage: resident [RANKS [STEPS]]; '" << given << "' is no number of " << what << " from 1 to " << most
              << '\n';
    std::exit(EXIT_FAILURE);
  }
  return number;
}

/// Calls `step` with the rows of each step, and returns the loss of the last.
template <class Step>
double train(std::size_t steps, std::size_t ranks, const Step& step) {
  std::mt19937 random(2);
  double loss = 0;
  for (std::size_t index = 0; index < steps; ++index) loss = step(chosen_by_rank(ranks, random));
  return loss;
}

void report(std::string_view how, double loss, const muster::call_profile& profile) {
  std::cout << how << ": loss " << loss << ", " << profile.input_bytes / profile.calls << " bytes of inputs per step\n";
}

int run(std::size_t ranks, std::size_t steps) {
  using namespace muster;
  world w({.ranks = static_cast<unsigned>(ranks)});
  const auto all = make_samples(ranks * rows_of_each);
  const sgd rule{.rate = 0.3, .momentum = 0.5};
  const auto zeros = tensor::zeros<float>({features});

  const auto x = w.scattered("x", all.x);
  const auto y = w.scattered("y", all.y);
  const auto weights = w.replicate("weights", zeros);
  const auto resident = w.function(loss_and_gradient, sliceable(x, y), replicas(weights), outputs(avg("loss")),
                                   updates(reduced_into(weights, avg, rule)), named("resident"));
  const auto loss = train(steps, ranks, [&](const auto& chosen) { return resident.with({.batch_s = chosen})(); });
  report("rows that stay in the ranks", loss, resident.profile());

  const auto others = w.replicate("others", zeros);
  const auto given = w.function(loss_and_gradient, rows("x", "y"), replicas(others), outputs(avg("loss")),
                                updates(reduced_into(others, avg, rule)), named("given"));
  const auto other_loss = train(
      steps, ranks, [&](const auto& chosen) { return given.with({.batch = chosen_of_all(chosen)})(all.x, all.y); });
  report("rows given with each call", other_loss, given.profile());

  const bool are_same = w.get_value(0, weights).to_vector<float>() == w.get_value(0, others).to_vector<float>();
  std::cout << "the weights are " << (are_same ? "the same, bit for bit\n" : "NOT the same\n");
  return are_same ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  const auto ranks = argc > 1 ? number_of("ranks", argv[1], most_ranks) : 2;
  const auto steps = argc > 2 ? number_of("steps", argv[2], most_steps) : 300;
  try {
    return run(ranks, steps);
  } catch (const std::exception& failure) {
    std::cerr << "resident: " << failure.what() << '\n';
    return EXIT_FAILURE;
  }
}
