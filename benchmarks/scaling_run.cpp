// SPDX-License-Identifier: BSL-1.0
#include "scaling_run.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

#include "scaling_crew.hpp"
#include "scaling_threads.hpp"

namespace scaling {

namespace {

// A crew for one run.
template <class Machine>
class crew {
public:
  crew(Machine& where, const plan& what) : common_(where, what) {
    common_.submitters_left = what.submitters;
    for (std::size_t index = 0; index < what.workers; ++index) workers_.emplace_back(common_, index);
    for (std::size_t index = 0; index < what.submitters; ++index) {
      const auto tasks = what.tasks / what.submitters;
      submitters_.emplace_back(common_, tasks, [this, tasks, index](std::size_t submitted) {
        if (index == 0) mark(submitted, tasks);
      });
    }
  }

  figures run() {
    std::vector<typename Machine::job> jobs;
    jobs.reserve(submitters_.size() + workers_.size());
    const auto workers_for_each = common_.what.workers / common_.what.submitters;
    for (std::size_t index = 0; index < submitters_.size(); ++index) {
      jobs.push_back({.place = index * workers_for_each, .body = [this, index] { submitters_[index].run(); }});
    }
    for (std::size_t index = 0; index < workers_.size(); ++index) {
      jobs.push_back({.place = index, .body = [this, index] { workers_[index].run(); }});
    }
    common_.where.run(std::move(jobs));
    return result();
  }

private:
  // A submitter goes through its first fifth to get everything going; the rest is measured.
  void mark(std::size_t submitted, std::size_t tasks) {
    if (submitted == tasks / 5) begin_ = {.when = common_.where.now(), .busy = busy()};
    if (submitted == tasks) end_ = {.when = common_.where.now(), .busy = busy()};
  }

  nanoseconds busy() const {
    // Of threads that run meanwhile nothing can be read; there it says nothing anyway.
    if constexpr (std::is_same_v<Machine, threads>) return nanoseconds(0);
    return std::accumulate(workers_.begin(), workers_.end(), nanoseconds(0),
                           [](nanoseconds sum, const auto& each) { return sum + each.seen().busy; });
  }

  figures result() const {
    figures all;
    for (const auto& each : submitters_) all += each.seen();
    for (const auto& each : workers_) all += each.seen();
    const std::chrono::duration<double> period = end_.when - begin_.when;
    const std::chrono::duration<double> worked = end_.busy - begin_.busy;
    all.tasks_per_second = static_cast<double>(all.tasks) * 0.8 / period.count();
    all.utilisation = worked / period / static_cast<double>(workers_.size());
    return all;
  }

  struct reading {
    nanoseconds when{0};
    nanoseconds busy{0};
  };

  common<Machine> common_;
  std::deque<worker<Machine>> workers_;
  std::deque<submitter<Machine>> submitters_;
  reading begin_;
  reading end_;
};

}  // namespace

figures simulate(const plan& what, const machine_costs& costs) {
  machine cores(costs);
  return crew<machine>(cores, what).run();
}

nanoseconds simulate_ping_pong(const machine_costs& costs) {
  constexpr std::uint64_t rounds = 1000;
  constexpr nanoseconds for_ever{1'000'000'000};
  machine cores(costs);
  auto& ping = cores.make_words(line_kind::other, 1, 1)[0];
  auto& pong = cores.make_words(line_kind::other, 1, 1)[0];
  nanoseconds taken{0};
  const auto await = [&](const simulated_word& from, std::uint64_t round) {
    cores.spin_until(for_ever, [&] { return from.load(std::memory_order_acquire) == round; });
  };
  const auto ask = [&] {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      ping.store(round, std::memory_order_release);
      await(pong, round);
    }
    taken = cores.now();
  };
  const auto answer = [&] {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      await(ping, round);
      pong.store(round, std::memory_order_release);
    }
  };
  cores.run({{.place = 0, .body = ask}, {.place = 0, .body = answer}});
  return taken / static_cast<std::int64_t>(rounds);
}

figures run_threads(const plan& what) {
  threads here;
  return crew<threads>(here, what).run();
}

event_counts& event_counts::operator+=(const event_counts& more) {
  for (std::size_t kind = 0; kind < line_kinds; ++kind) {
    lines[kind].reads += more.lines[kind].reads;
    lines[kind].writes += more.lines[kind].writes;
    lines[kind].failed += more.lines[kind].failed;
    lines[kind].transfers += more.lines[kind].transfers;
  }
  sleeps += more.sleeps;
  wakes += more.wakes;
  return *this;
}

figures& figures::operator+=(const figures& more) {
  events += more.events;
  tasks += more.tasks;
  looks += more.looks;
  lost += more.lost;
  helped += more.helped;
  busy += more.busy;
  delays.insert(delays.end(), more.delays.begin(), more.delays.end());
  return *this;
}

double figures::transfers_per_task() const {
  double sum = 0;
  for (std::size_t kind = 0; kind < line_kinds; ++kind) sum += transfers_per_task(static_cast<line_kind>(kind));
  return sum;
}

nanoseconds figures::delay(double share) const {
  if (delays.empty()) return nanoseconds(0);
  auto sorted = delays;
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(sorted.size() - 1));
  std::ranges::nth_element(sorted, at);
  return *at;
}

std::string name_of(completion ends) {
  switch (ends) {
    case completion::slots: return "slots";
    case completion::ahead: return "slots, ahead";
    case completion::rings: return "rings";
    case completion::sweep: return "sweep";
  }
  return "?";
}

}  // namespace scaling
