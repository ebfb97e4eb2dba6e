// SPDX-License-Identifier: BSL-1.0
#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace digits {

namespace {

[[noreturn]] void fail(unsigned ranks, std::size_t step, const char* why, double number) {
  std::ostringstream what;
  what << ranks << " ranks, step " << step + 1 << ": " << why << number;
  throw std::runtime_error(std::move(what).str());
}

checked_run run(const settings& how, const samples& train, std::size_t steps, const checked_run* first,
                const std::function<void()>& after_step) {
  trainer learner(how, train);
  checked_run made{.ranks = how.ranks, .losses = {}};
  for (std::size_t step = 0; step < steps; ++step) {
    const auto loss = learner.step().loss;
    made.losses.push_back(loss);
    if (!std::isfinite(loss)) fail(how.ranks, step, "the loss is no finite number, a smaller rate may help: ", loss);
    if (!learner.replicas_are_the_same()) fail(how.ranks, step, "the ranks' weights differ, and the loss is ", loss);
    if (first != nullptr)
      made.largest_difference = std::max(made.largest_difference, loss_difference(loss, first->losses[step]));
    if (!(made.largest_difference <= loss_tolerance)) {
      fail(how.ranks, step, "the loss differs from that of one rank, relative, by ", made.largest_difference);
    }
    after_step();
  }
  return made;
}

}  // namespace

double loss_difference(double found, double expected) {
  return found == 0 && expected == 0 ? 0 : std::abs(found - expected) / std::abs(expected);
}

std::vector<checked_run> check_ranks(settings how, const samples& train, std::size_t steps,
                                     const std::function<void()>& after_step) {
  std::vector<checked_run> found;
  for (const unsigned ranks : {1U, 2U, 4U}) {
    how.ranks = ranks;
    auto made = run(how, train, steps, found.empty() ? nullptr : &found.front(), after_step);
    found.push_back(std::move(made));
  }
  return found;
}

}  // namespace digits
