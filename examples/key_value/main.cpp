// SPDX-License-Identifier: BSL-1.0
// key_value: workers learn to read handwritten digits through a key-value store, in rounds and then each by itself. On
// the way a worker is killed, and an owner of keys; the others are told, and go on, and read as many digits right in
// the end as examples/digits, which trains the same model undisturbed.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <muster/base/text.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params.hpp>
#include <muster/pool/process.hpp>
#include <muster/process/init.hpp>

#include "data.hpp"
#include "model.hpp"
#include "train.hpp"

namespace {

using digits::samples;
using muster::tensor;

struct settings {
  std::uint64_t workers = 4;
  std::uint64_t epochs = 100;
  std::uint64_t batch = 512;
  double rate = 0.5;
  double momentum = 0.9;
  std::uint64_t seed = 1;
};

const std::vector<muster::store_key> keys{"w", "b"};

// What of a batch this worker learns from: every n-th image, among the workers that are there.
samples part_of(const muster::kv_store& kv, const samples& all, std::span<const std::int64_t> batch) {
  const auto living = kv.living();
  const auto first = static_cast<std::size_t>(std::find(living.begin(), living.end(), kv.rank()) - living.begin());
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  for (auto each = first; each < batch.size(); each += living.size()) {
    const auto row = all.images.row(static_cast<std::size_t>(batch[each])).span<float>();
    images.insert(images.end(), row.begin(), row.end());
    labels.push_back(all.labels.at<std::int32_t>(static_cast<std::size_t>(batch[each])));
  }
  return {.images = tensor::from(images, {labels.size(), digits::pixels}), .labels = tensor::from(labels)};
}

// What the mean gradient over the batch has of this worker's images.
std::vector<tensor> gradients(const muster::kv_store& kv, const samples& all, std::span<const std::int64_t> batch) {
  const auto part = part_of(kv, all, batch);
  auto [loss, right, w, b] = digits::softmax_gradients(part.images, part.labels, kv.pull("w"), kv.pull("b"));
  const double share = static_cast<double>(part.count()) / static_cast<double>(batch.size());
  muster::scale(w, share);
  muster::scale(b, share);
  return {w, b};
}

// A round that another's death has undone is made again, by those that are left.
void learn(const muster::kv_store& kv, const samples& all, std::span<const std::int64_t> batch) {
  const auto found = gradients(kv, all, batch);
  for (std::size_t each = 0; each < keys.size(); ++each) {
    try {
      kv.push(keys[each], found[each]);
    } catch (const muster::task_error& failure) {
      if (failure.code() != muster::errc::peer_lost) throw;
      std::cout << muster::text("worker ", kv.rank(), " is told: ", failure.what(), '\n') << std::flush;
      kv.push(keys[each], gradients(kv, all, batch)[each]);
    }
  }
}

void work(const muster::kv_ticket& ticket, std::size_t rank, const settings& how, const tensor& images,
          const tensor& labels) {
  const muster::kv_store kv(ticket, rank);
  if (rank >= kv.size()) return kv.run();
  const auto begin = digits::softmax_weights();
  for (std::size_t each = 0; each < keys.size(); ++each) kv.init(keys[each], begin[each]);
  kv.set_optimizer(muster::sgd{.rate = how.rate, .momentum = how.momentum});
  kv.barrier();
  const samples train{.images = images, .labels = labels};
  digits::batch_order order(train.count(), how.batch, how.seed);
  for (std::uint64_t epoch = 0; epoch < how.epochs; ++epoch) {
    for (std::size_t each = 0; each < order.per_round(); ++each) learn(kv, train, order.next().list());
    if (rank == 0) kv.values().push("epochs", epoch + 1);
  }
}

double accuracy(const muster::store& values, const samples& test) {
  const auto [loss, guesses] =
      digits::softmax_guesses(test.images, test.labels, values.pull<tensor>("w").value, values.pull<tensor>("b").value);
  std::size_t right = 0;
  for (std::size_t each = 0; each < test.count(); ++each) {
    right += guesses.at<std::int32_t>(each) == test.labels.at<std::int32_t>(each) ? 1 : 0;
  }
  return 100.0 * static_cast<double>(right) / static_cast<double>(test.count());
}

double train(const muster::kv_ticket& ticket, const settings& how, const digits::divided_samples& data) {
  const muster::store values(ticket.values());
  std::vector<muster::process> all;
  for (std::size_t rank = 0; rank < how.workers + ticket.options().spare_owners; ++rank) {
    all.emplace_back(work, ticket, rank, how, data.train.images, data.train.labels);
  }
  const auto kill_at = [&](std::uint64_t epoch, std::size_t rank, const std::string& what) {
    if (!values.wait_for("epochs", epoch)) throw std::runtime_error("the workers do not get on");
    std::cout << "after epoch " << epoch << ' ' << what << " is killed" << std::endl;
    all[rank].kill(SIGKILL);
    all[rank].join();
  };
  kill_at(how.epochs / 3, how.workers - 1, "worker " + std::to_string(how.workers - 1));
  kill_at(2 * how.epochs / 3, how.workers, "an owner of keys");
  for (std::size_t rank = 0; rank + 1 < how.workers; ++rank) {
    all[rank].join();
    all[rank].watch();
  }
  return accuracy(values, data.test);
}

/// What examples/digits makes of the same images in the same number of steps.
double undisturbed(const settings& how, const digits::divided_samples& data) {
  digits::trainer all({.model = digits::model_kind::softmax,
                       .ranks = 2,
                       .batch = how.batch,
                       .rate = how.rate,
                       .momentum = how.momentum,
                       .seed = how.seed},
                      data.train);
  for (std::uint64_t step = 0; step < how.epochs * all.steps_per_epoch(); ++step) all.step();
  return 100.0 * all.test(data.test).all.accuracy();
}

constexpr double most_less = 0.5;  // points

void require_as_good(double found, double wanted) {
  if (found >= wanted - most_less) return;
  throw std::runtime_error(
      muster::text("that is more than ", most_less, " points less than the ", wanted, " % of examples/digits"));
}

void run(const settings& how, const std::string& file) {
  const auto data = digits::divide(digits::read_samples(file), how.seed);
  const auto wanted = undisturbed(how, data);
  std::cout << "undisturbed, by examples/digits: " << wanted << " % of the test images are read right\n\nin rounds, "
            << how.workers << " workers and 2 spare owners:" << std::endl;
  const muster::kv_ticket rounds(muster::kv_kind::sync, {.workers = how.workers, .spare_owners = 2});
  const auto in_rounds = train(rounds, how, data);
  std::cout << in_rounds << " % are read right\n\neach by itself, at most 4 pushes ahead of the slowest:" << std::endl;
  require_as_good(in_rounds, wanted);
  const muster::kv_ticket alone(muster::kv_kind::async, {.workers = how.workers, .spare_owners = 2, .staleness = 4});
  const auto by_itself = train(alone, how, data);
  std::cout << by_itself << " % are read right" << std::endl;
  require_as_good(by_itself, wanted);
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  settings how;
  std::string file;
  CLI::App app("Learns to read handwritten digits in workers that share a key-value store.");
  app.add_option("--data", file, "The digits, as scikit-learn has them: digits.csv.gz, or unpacked")->required();
  app.add_option("--workers", how.workers, "How many learn")->check(CLI::Range(2, 64))->capture_default_str();
  app.add_option("--epochs", how.epochs, "How often every image is learned from")
      ->check(CLI::Range(3, 100'000))
      ->capture_default_str();
  app.add_option("--batch", how.batch, "Images in a step of all workers")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rate", how.rate, "Learning rate")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--seed", how.seed, "Of the division of the images and their order")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    run(how, file);
  } catch (const std::exception& failure) {
    std::cerr << "key_value: " << failure.what() << '\n';
    return EXIT_FAILURE;
  }
}
