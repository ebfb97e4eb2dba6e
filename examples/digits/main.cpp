// SPDX-License-Identifier: BSL-1.0
// digits: learns to read handwritten digits in several processes at once. How many they are makes no difference to what
// is learned (--check), nor does it that they are killed meanwhile (--chaos).
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include <muster/process/init.hpp>

#include "data.hpp"
#include "runs.hpp"
#include "train.hpp"

namespace digits {
namespace {

void add_options(CLI::App& app, options& chosen) {
  auto& how = chosen.how;
  const std::map<std::string, model_kind> models = {{"softmax", model_kind::softmax}, {"network", model_kind::network}};
  app.add_option("--data", chosen.data, "The digits, as scikit-learn has them: digits.csv.gz, or unpacked")->required();
  app.add_option("--model", how.model, "softmax, or network (default): one hidden layer, of rectifiers")
      ->transform(CLI::CheckedTransformer(models))
      ->option_text("softmax|network");
  app.add_option("--hidden", how.hidden, "Units of the network's hidden layer")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--ranks", how.ranks, "Processes that compute, this one included; 0: one per processor")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  app.add_option("--epochs", chosen.epochs, "How often every image is learned from")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--batch", how.batch, "Images in a step")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--slices", how.slices, "Pieces in which each rank computes its share of a step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rate", how.rate, "Learning rate")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--momentum", how.momentum, "Of the gradients; less than 1")
      ->check(CLI::Range(0.0, 0.9999))
      ->capture_default_str();
  app.add_option("--seed", how.seed,
                 "Of the division into training and test, the weights, the batches, and who is killed when")
      ->capture_default_str();
  app.add_option("--svg", chosen.svg, "Draw loss curves and misclassified images into this file");
  app.add_option("--at-least", chosen.least_accuracy, "Fail unless so many percent of the test images are read right")
      ->check(CLI::Range(0, 100));
  auto* const chaos = app.add_flag("--chaos", chosen.with_chaos,
                                   "Kill ranks at random moments, then train again undisturbed and compare");
  app.add_flag("--check", chosen.only_check, "Only make 100 steps with 1, 2 and 4 ranks, and compare")->excludes(chaos);
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  muster::init(argc, argv);
  digits::options chosen;
  CLI::App app("Learns to read handwritten digits, in several processes that each compute a part of every step.");
  digits::add_options(app, chosen);
  CLI11_PARSE(app, argc, argv);
  try {
    const auto data = digits::divide(digits::read_samples(chosen.data), chosen.how.seed);
    chosen.only_check ? digits::run_check(chosen, data) : digits::run_training(chosen, data);
  } catch (const std::exception& failure) {
    std::cerr << "digits: " << failure.what() << '\n';
    return EXIT_FAILURE;
  }
}
