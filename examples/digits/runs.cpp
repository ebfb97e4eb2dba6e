// SPDX-License-Identifier: BSL-1.0
#include "runs.hpp"

#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include <muster/base/text.hpp>

#include "chaos.hpp"
#include "check.hpp"
#include "picture.hpp"
#include "progress/progress_bar.hpp"

namespace digits {
namespace {

// What became of a training.
struct history {
  curve train{.name = "training", .points = {}};
  curve test{.name = "test", .points = {}};
  test_result last;
  std::vector<muster::tensor> weights;
};

const char* name_of(model_kind kind) { return kind == model_kind::network ? "network" : "softmax"; }

void add(score& all, const score& some) {
  const auto rows = static_cast<double>(all.rows + some.rows);
  all.loss += (some.loss - all.loss) * static_cast<double>(some.rows) / rows;
  all.right += some.right;
  all.rows += some.rows;
}

score learn_epoch(trainer& learner, chaos* killer, progress::progress_bar& bar, curve& losses) {
  score all;
  for (std::size_t step = 0; step < learner.steps_per_epoch(); ++step) {
    if (killer != nullptr) killer->aim(learner.world().pids());
    const auto found = learner.step();
    add(all, found);
    losses.points.push_back({.step = static_cast<double>(losses.points.size() + 1), .loss = found.loss});
    bar.advance();
  }
  return all;
}

void print_epoch(std::size_t epoch, const score& train, const score& test) {
  std::cout << std::fixed << std::setw(5) << epoch << std::setprecision(4) << std::setw(12) << train.loss
            << std::setprecision(1) << std::setw(10) << 100 * train.accuracy() << " %" << std::setprecision(4)
            << std::setw(12) << test.loss << std::setprecision(1) << std::setw(10) << 100 * test.accuracy() << " %"
            << std::endl;
}

history learn(const options& chosen, const divided_samples& data, trainer& learner, chaos* killer, bool is_quiet) {
  history made;
  progress::progress_bar bar(is_quiet ? "again, undisturbed" : "training", chosen.epochs * learner.steps_per_epoch());
  for (std::size_t epoch = 1; epoch <= chosen.epochs; ++epoch) {
    const auto train = learn_epoch(learner, killer, bar, made.train);
    made.last = learner.test(data.test);
    made.test.points.push_back({.step = made.train.points.back().step, .loss = made.last.all.loss});
    if (is_quiet) continue;
    bar.clear();
    print_epoch(epoch, train, made.last.all);
  }
  if (!learner.replicas_are_the_same()) throw std::runtime_error("the ranks' weights differ");
  made.weights = learner.weights();
  return made;
}

history learn_undisturbed(const options& chosen, const divided_samples& data, bool is_quiet) {
  trainer learner(chosen.how, data.train);
  return learn(chosen, data, learner, nullptr, is_quiet);
}

history learn_among_deaths(const options& chosen, const divided_samples& data) {
  trainer learner(chosen.how, data.train);
  if (learner.world().ranks() == 1)
    throw std::runtime_error("--chaos kills ranks other than the program's own; with --ranks 1 there are none");
  chaos killer(chosen.how.seed);
  auto made = learn(chosen, data, learner, &killer, false);
  std::cout << "chaos: " << killer.kills() << " ranks killed, " << learner.world().replaced_ranks() << " replaced, "
            << learner.repeated() << " steps made again\n";
  if (killer.kills() == 0) throw std::runtime_error("--chaos: no rank could be killed");
  if (!same_bits(made.weights, learn_undisturbed(chosen, data, true).weights)) {
    throw std::runtime_error("undisturbed, the weights become others");
  }
  std::cout << "the weights are, bit for bit, what they become undisturbed\n";
  return made;
}

void draw(const options& chosen, const std::vector<curve>& curves, const samples& on, const muster::tensor& guesses) {
  if (chosen.svg.empty()) return;
  const auto title = std::string("Handwritten digits, ") + name_of(chosen.how.model) + ": loss by step";
  write_file(chosen.svg, picture_of(title, curves, on, guesses));
  std::cout << "drawn: " << chosen.svg << '\n';
}

curve curve_of(const checked_run& run) {
  curve made{.name = std::to_string(run.ranks) + (run.ranks == 1 ? " rank" : " ranks"), .points = {}};
  for (const auto loss : run.losses) {
    made.points.push_back({.step = static_cast<double>(made.points.size() + 1), .loss = loss});
  }
  return made;
}

}  // namespace

void run_training(const options& chosen, const divided_samples& data) {
  std::cout << data.train.count() << " images to learn from, " << data.test.count() << " to test with; "
            << name_of(chosen.how.model) << "\nepoch        loss  accuracy   test loss  accuracy\n";
  const auto found = chosen.with_chaos ? learn_among_deaths(chosen, data) : learn_undisturbed(chosen, data, false);
  const auto percent = 100 * found.last.all.accuracy();
  std::cout << "test accuracy: " << std::setprecision(1) << percent << " %\n";
  draw(chosen, {found.train, found.test}, data.test, found.last.guesses);
  if (percent >= chosen.least_accuracy) return;
  throw std::runtime_error(
      muster::text("the test accuracy is less than the ", chosen.least_accuracy,
                   " % asked for by --at-least: train for more --epochs, or with more --hidden units"));
}

void run_check(const options& chosen, const divided_samples& data) {
  constexpr std::size_t steps = 100;
  progress::progress_bar bar("checking", 3 * steps);
  const auto runs = check_ranks(chosen.how, data.train, steps, [&] { bar.advance(); });
  bar.clear();
  std::vector<curve> curves;
  for (const auto& each : runs) {
    curves.push_back(curve_of(each));
    std::cout << curves.back().name << ": loss " << each.losses.front() << " in the first step, " << each.losses.back()
              << " in the last of " << steps << "; the weights of all ranks the same after each";
    if (each.ranks > 1) std::cout << "; differs from 1 rank, relative, by " << each.largest_difference << " at most";
    std::cout << '\n';
  }
  draw(chosen, curves, samples{}, muster::tensor{});
}

}  // namespace digits
