// SPDX-License-Identifier: BSL-1.0
#include "bank.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/pool/pool.hpp>

#include "check.hpp"
#include "runs.hpp"

namespace kalman {

namespace {

using seconds = std::chrono::duration<double>;

struct assignment {
  std::size_t n = 0;
  std::size_t steps = 0;
  std::uint32_t seed = 0;
};

struct estimate {
  muster::tensor mu;
  muster::tensor sigma;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(mu, sigma);
  }
};

struct solution {
  assignment what;
  estimate found;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(what.n, what.steps, what.seed, found);
  }
};

estimate estimate_alone(const assignment& what) {
  const auto found = run_filter(problem(what.n, what.seed), what.steps, place::one_thread);
  return {.mu = found.mu, .sigma = found.sigma};
}

// The largest error.
double check_solution(const solution& given) {
  const problem whole(given.what.n, given.what.seed);
  reference exact(whole);
  for (std::size_t step = 0; step < given.what.steps; ++step) exact.step(whole.measurement(step));
  require_covariance(given.found.sigma);
  return std::max(check("mu", given.found.mu, exact.mu()), check("Sigma", given.found.sigma, exact.sigma()));
}

template <class F>
seconds time_of(F what) {
  const auto start = std::chrono::steady_clock::now();
  what();
  return std::chrono::steady_clock::now() - start;
}

}  // namespace

void run_bank(std::size_t filters, unsigned workers, std::size_t n, std::size_t steps) {
  std::vector<assignment> all(filters);
  for (std::size_t each = 0; each < filters; ++each) {
    all[each] = {.n = n, .steps = steps, .seed = static_cast<std::uint32_t>(each)};
  }
  const muster::pool pool({.workers = workers, .name = "kalman"});
  std::vector<estimate> found;
  const auto together = time_of([&] { found = pool.with({.chunk = 1}).map(estimate_alone, all); });
  std::cout << filters << " filters of " << n << " dimensions, " << steps << " steps each\n"
            << pool.size() << " workers: " << together.count() << " s" << std::endl;

  std::vector<solution> solutions;
  const auto in_turn = time_of([&] {
    for (const auto& each : all) solutions.push_back({.what = each, .found = estimate_alone(each)});
  });
  std::cout << "one after the other: " << in_turn.count() << " s\n"
            << "speed-up: " << in_turn / together << std::endl;

  for (std::size_t each = 0; each < filters; ++each) {
    require_same("mu", found[each].mu, solutions[each].found.mu);
    require_same("Sigma", found[each].sigma, solutions[each].found.sigma);
  }
  const auto errors = pool.with({.chunk = 1}).map(check_solution, solutions);
  std::cout << "largest error: " << *std::ranges::max_element(errors) << ", and the same bits in both\n";
}

}  // namespace kalman
