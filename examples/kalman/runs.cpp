// SPDX-License-Identifier: BSL-1.0
#include "runs.hpp"

#include <exception>
#include <sstream>
#include <thread>
#include <utility>

#include <muster/collectives/graph_local.hpp>
#include <muster/collectives/graph_trace.hpp>
#include <muster/collectives/group.hpp>
#include <muster/collectives/group_link.hpp>
#include <muster/pool/pool.hpp>

#include "filter.hpp"

namespace kalman {

namespace {

using muster::graph_plan;

std::size_t size_of(const problem& given) { return static_cast<std::size_t>(given.mu.size()); }

rank_report report_of(const graph_plan& plan) {
  std::ostringstream times;
  muster::print_times(times, plan);
  return {.times = std::move(times).str(), .trace = muster::trace_of({&plan, 1})};
}

// Rank 0: `run_once` takes a step.
template <class RunOnce>
outcome run_rank_0(graph_plan& plan, const problem& given, std::size_t steps, const observer& observe,
                   RunOnce run_once) {
  plan.set("mu", tensor_of(given.mu));
  plan.set("Sigma", tensor_of(given.sigma));
  plan.set("H", tensor_of(given.h));
  plan.set("R", tensor_of(given.r));
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t step = 0; step < steps; ++step) {
    plan.set("data", tensor_of(given.measurement(step)));
    run_once();
    if (observe) observe(step, plan);
  }
  const auto end = std::chrono::steady_clock::now();
  return {.mu = plan.value("mu"), .sigma = plan.value("Sigma"), .ranks = {report_of(plan)}, .elapsed = end - start};
}

// All that rank 1 needs comes to it in messages, so that it just runs as often.
rank_report run_rank_1(graph_plan& plan, muster::graph_link& link, std::size_t steps) {
  for (std::size_t step = 0; step < steps; ++step) plan.run(link);
  return report_of(plan);
}

outcome run_in_turns(const problem& given, std::size_t steps, const observer& observe) {
  muster::local_graph all(make_filter(size_of(given)));
  auto found = run_rank_0(all[0], given, steps, observe, [&] { all.run(); });
  found.ranks.push_back(report_of(all[1]));
  return found;
}

outcome run_over(muster::graph_link& link, const problem& given, std::size_t steps, const observer& observe) {
  try {
    auto plan = make_filter(size_of(given)).plan(0);
    return run_rank_0(plan, given, steps, observe, [&] { plan.run(link); });
  } catch (const std::exception& failure) {
    link.abort(failure.what());  // it may have come from between two runs
    throw;
  }
}

// When a rank fails, what the other gets says so too.
outcome run_in_threads(const problem& given, std::size_t steps, const observer& observe) {
  muster::local_graph_links links(2);
  auto plan = make_filter(size_of(given)).plan(1);
  rank_report other;
  std::exception_ptr failure;
  outcome found;
  {
    const std::jthread thread([&] {
      try {
        other = run_rank_1(plan, links[1], steps);
      } catch (...) {
        failure = std::current_exception();
      }
    });
    found = run_over(links[0], given, steps, observe);
  }
  if (failure) std::rethrow_exception(failure);
  found.ranks.push_back(std::move(other));
  return found;
}

// The barrier: from then on each rank hears of the other's death, and the time is that of the steps.
rank_report serve_as_rank_1(const muster::group_ticket& ticket, std::size_t n, std::size_t steps) {
  muster::group group(ticket, 1);
  muster::group_link link(group);
  auto plan = make_filter(n).plan(1);
  group.barrier();
  return run_rank_1(plan, link, steps);
}

outcome run_in_processes(const problem& given, std::size_t steps, const observer& observe) {
  const muster::pool pool({.workers = 1, .name = "kalman"});
  const muster::group_ticket ticket(2);
  auto other = pool.apply_async(serve_as_rank_1, ticket, size_of(given), steps);
  muster::group group(ticket, 0);
  muster::group_link link(group);
  group.barrier();
  auto found = run_over(link, given, steps, observe);
  found.ranks.push_back(other.get());
  return found;
}

}  // namespace

outcome run_filter(const problem& given, std::size_t steps, place where, const observer& observe) {
  switch (where) {
    case place::one_thread: return run_in_turns(given, steps, observe);
    case place::threads: return run_in_threads(given, steps, observe);
    case place::processes: break;
  }
  return run_in_processes(given, steps, observe);
}

}  // namespace kalman
