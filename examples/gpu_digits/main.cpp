// SPDX-License-Identifier: BSL-1.0
// gpu_digits: the network of examples/digits learns on GPUs, a rank on each, or several on one. Prints its loss beside
// that of one rank on the CPU, which is to be the same but for how products are rounded.
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/driver.hpp>
#include <muster/parallel/world.hpp>
#include <muster/process/init.hpp>

#include "check.hpp"
#include "data.hpp"
#include "gpu_model.hpp"
#include "model.hpp"
#include "train.hpp"

namespace gpu_digits {
namespace {

struct options {
  std::string data;
  digits::settings how{.ranks = 1};
  unsigned steps = 100;
  double tolerance = 1e-3;
};

// On as many GPUs as there are, in turn.
muster::world_options ranks_on_gpus(unsigned ranks) {
  std::vector<muster::device> all;
  for (unsigned index = 0; index < muster::cuda_device::count(); ++index) {
    all.push_back(muster::device::cuda(static_cast<std::uint16_t>(index)));
  }
  return {.ranks = ranks, .devices = all, .name = "gpu_digits"};
}

std::vector<double> losses_on_gpus(const options& chosen, const digits::samples& train) {
  using namespace muster;
  world world(ranks_on_gpus(chosen.how.ranks));
  const auto begin_with = digits::network_weights(chosen.how.hidden, chosen.how.seed);
  std::vector<variable> weights;
  for (const auto& each : begin_with) {
    weights.push_back(world.replicate("weights " + std::to_string(weights.size() + 1), each));
  }
  const sgd rule{.rate = chosen.how.rate, .momentum = chosen.how.momentum};
  const auto into = [&](const variable& which) { return reduced_into(which, avg, rule); };
  auto step =
      world.function(network_gradients, rows("images", "labels"),
                     replicas(weights[0], weights[1], weights[2], weights[3]), outputs(avg("loss"), sum("right")),
                     updates(into(weights[0]), into(weights[1]), into(weights[2]), into(weights[3])), named("step"));
  digits::batch_order order(train.count(), chosen.how.batch, chosen.how.seed);
  std::vector<double> losses;
  while (losses.size() < chosen.steps) {
    const run_options options{.batch = order.next(), .num_slices = chosen.how.slices};
    losses.push_back(std::get<0>(step.with(options)(train.images, train.labels)));
  }
  return losses;
}

std::vector<double> losses_on_cpu(const options& chosen, const digits::samples& train) {
  auto how = chosen.how;
  how.ranks = 1;
  digits::trainer trainer(how, train);
  std::vector<double> losses;
  while (losses.size() < chosen.steps) losses.push_back(trainer.step().loss);
  return losses;
}

int run(const options& chosen) {
  if (const auto problem = muster::cuda_driver::problem()) {
    std::cout << "gpu_digits: " << *problem << '\n';
    return EXIT_SUCCESS;
  }
  const auto train = digits::divide(digits::read_samples(chosen.data), chosen.how.seed).train;
  std::cout << chosen.how.ranks << " ranks on " << muster::cuda_device::open(muster::device::cuda(0))->name() << '\n';
  const auto there = losses_on_gpus(chosen, train);
  const auto here = losses_on_cpu(chosen, train);
  double furthest = 0;
  for (std::size_t step = 0; step < there.size(); ++step) {
    const auto apart = digits::loss_difference(there[step], here[step]);
    if (apart > furthest || std::isnan(apart)) furthest = apart;  // std::max would drop what is no number
    if (step % 10 != 0 && step + 1 != there.size()) continue;
    std::cout << "step " << std::setw(4) << step + 1 << ": loss " << there[step] << ", on the CPU " << here[step]
              << '\n';
  }
  std::cout << "furthest apart, relative: " << furthest << '\n';
  if (furthest <= chosen.tolerance) return EXIT_SUCCESS;
  std::cerr << "gpu_digits: that is not within " << chosen.tolerance << '\n';
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace gpu_digits

int main(int argc, char** argv) {
  muster::init(argc, argv);
  CLI::App app("Learns to read handwritten digits on GPUs.", "gpu_digits");
  gpu_digits::options chosen;
  app.add_option("--data", chosen.data, "The digits, as scikit-learn has them: digits.csv.gz, or unpacked");
  app.add_option("--ranks", chosen.how.ranks, "Processes that compute, this one included")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--steps", chosen.steps, "How many batches are learned from")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--hidden", chosen.how.hidden, "Units of the hidden layer")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--within", chosen.tolerance, "Fail when the losses are further apart than that, relative")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return gpu_digits::run(chosen);
  } catch (const std::exception& failure) {
    std::cerr << "gpu_digits: " << failure.what() << '\n';
    return EXIT_FAILURE;
  }
}
