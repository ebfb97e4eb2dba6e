// SPDX-License-Identifier: BSL-1.0
#include "comparison.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include <muster/base/effective_cpus.hpp>
#include <muster/base/system_call.hpp>

#include "wanted.hpp"

namespace bench {

namespace {

double nanoseconds_of(const side& which, std::size_t operations) {
  if (which.timed) return std::chrono::duration<double, std::nano>(which.timed(operations)).count();
  if (which.once) {
    std::chrono::duration<double, std::nano> all{};
    for (std::size_t index = 0; index < operations; ++index) all += which.once();
    return all.count();
  }
  which.run(operations / 8 + 1);  // warm: a sleeper woken, caches filled
  return std::chrono::duration<double, std::nano>(time_of([&] { which.run(operations); })).count();
}

// The threads of the side before sleep by then: those of muster look for work for at most 250 µs.
void let_others_rest() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

// Nanoseconds of one operation.
double measure(const side& which, std::size_t operations) {
  let_others_rest();
  which.begin();
  const double all = nanoseconds_of(which, operations);
  which.end();
  return all / static_cast<double>(operations);
}

std::size_t operations_for(const side& which, std::chrono::nanoseconds turn) {
  std::size_t operations = 1;
  for (;;) {
    const double whole = measure(which, operations) * static_cast<double>(operations);
    const double wanted = static_cast<double>(turn.count());
    if (whole >= wanted / 2)
      return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(operations) * wanted / whole));
    operations *= 2;
  }
}

double quantile(std::vector<double> values, double at) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(std::lround(at * static_cast<double>(values.size() - 1)))];
}

// The processors that this process could use when it started; pinning a thread does not change them.
const cpu_set_t& processors() {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    muster::system_call("sched_getaffinity", [&] { return ::sched_getaffinity(::getpid(), sizeof set, &set); });
    return set;
  }();
  return all;
}

std::string processor_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

namespace {

// One side in turns with others.
struct contender {
  explicit contender(const side& which, std::chrono::nanoseconds turn)
      : what(which), operations(operations_for(which, turn)) {}

  const side& what;
  std::size_t operations;
  std::vector<double> values;
};

// Every round has another order, so that nobody always comes after the same other.
std::vector<contender> take_turns(const std::vector<const side*>& sides, const effort& how, double scale) {
  std::vector<contender> all;
  all.reserve(sides.size());
  for (const auto* each : sides) all.emplace_back(*each, how.turn);
  for (std::size_t round = 0; round < how.rounds; ++round) {
    for (std::size_t step = 0; step < all.size(); ++step) {
      auto& next = all[(round + step) % all.size()];
      next.values.push_back(measure(next.what, next.operations) / scale);
    }
  }
  return all;
}

}  // namespace

namespace {

std::string with_unit(double nanoseconds) {
  std::ostringstream text;
  text << std::setprecision(3);
  if (nanoseconds < 1e3) {
    text << nanoseconds << " ns";
  } else if (nanoseconds < 1e6) {
    text << nanoseconds / 1e3 << " µs";
  } else {
    text << nanoseconds / 1e6 << " ms";
  }
  return std::move(text).str();
}

// "Open MPI 5.0.11 (MPICH 5.0.2: 24 ms)".
std::string name_beside_others(const contender& best, const std::vector<contender>& all) {
  std::string others;
  for (std::size_t each = 1; each < all.size(); ++each) {
    if (&all[each] == &best) continue;
    others += (others.empty() ? "" : ", ") + all[each].what.name + ": " + with_unit(quantile(all[each].values, 0.5));
  }
  return others.empty() ? best.what.name : best.what.name + " (" + others + ")";
}

}  // namespace

row compare_with_best(const std::string& name, const effort& how, const side& ours, const std::vector<side>& peers,
                      double scale) {
  std::vector<const side*> sides{&ours};
  sides.reserve(1 + peers.size());
  for (const auto& each : peers) sides.push_back(&each);
  const auto all = take_turns(sides, how, scale);
  const auto& best = *std::min_element(all.begin() + 1, all.end(), [](const contender& a, const contender& b) {
    return quantile(a.values, 0.5) < quantile(b.values, 0.5);
  });
  std::vector<double> ratios;
  ratios.reserve(how.rounds);
  for (std::size_t round = 0; round < how.rounds; ++round) {
    ratios.push_back(all.front().values[round] / best.values[round]);
  }
  const double ratio = quantile(ratios, 0.5);
  return {.name = name,
          .unit = "ns",
          .value = quantile(all.front().values, 0.5),
          .peer = name_beside_others(best, all),
          .peer_value = quantile(best.values, 0.5),
          .ratio = ratio,
          .spread = (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / ratio};
}

row compare(const std::string& name, const effort& how, const side& ours, const side& peer, double scale) {
  return compare_with_best(name, how, ours, {peer}, scale);
}

namespace {

bool has_single_calls(const side& which) { return which.singly || which.run; }

std::vector<double> time_singly(const side& which, std::size_t count) {
  if (which.singly) return which.singly(count);
  which.run(count / 8 + 1);  // warm
  std::vector<double> times(count);
  for (auto& each : times) each = static_cast<double>(time_of([&] { which.run(1); }).count());
  return times;
}

// Of each side in turns, so many that one in a hundred is not a single one.
void add_single_calls(const side& which, const effort& how, std::vector<double>& times) {
  const std::size_t count = how.rounds > 3 ? 1000 : 100;
  let_others_rest();
  which.begin();
  const auto found = time_singly(which, count);
  which.end();
  times.insert(times.end(), found.begin(), found.end());
}

std::optional<tail> tail_of(const std::vector<double>& times, double scale) {
  if (times.empty()) return std::nullopt;
  return tail{.p90 = quantile(times, 0.9) / scale, .p99 = quantile(times, 0.99) / scale};
}

}  // namespace

row compare_calls(const std::string& name, const effort& how, const side& ours, const std::vector<side>& peers,
                  double scale) {
  auto found = compare_with_best(name, how, ours, peers, scale);
  const auto& best = *std::ranges::find_if(peers, [&](const side& each) { return found.peer.starts_with(each.name); });
  constexpr int turns = 10;
  std::vector<double> own;
  std::vector<double> others;
  for (int turn = 0; turn < turns; ++turn) {
    if (has_single_calls(ours)) add_single_calls(ours, how, own);
    if (has_single_calls(best)) add_single_calls(best, how, others);
  }
  found.ours = tail_of(own, scale);
  found.peers = tail_of(others, scale);
  return found;
}

row row_of_tails(const std::string& name, const std::string& peer, const std::vector<double>& ours,
                 const std::vector<double>& peers) {
  const double usual = quantile(peers, 0.5);
  const auto tail_of = [](const std::vector<double>& values) {
    return tail{.p90 = quantile(values, 0.9), .p99 = quantile(values, 0.99)};
  };
  const auto own = tail_of(ours);
  return {.name = name,
          .unit = "ns",
          .value = quantile(ours, 0.5),
          .peer = peer,
          .peer_value = usual,
          .ratio = own.p90 / usual,
          .spread = own.p99 / usual,
          .ours = own,
          .peers = tail_of(peers)};
}

row as_rate(row times, double bytes) {
  times.unit = "GB/s";
  times.value = bytes / times.value;
  times.peer_value = bytes / times.peer_value;
  times.ratio = 1 / times.ratio;
  return times;
}

row amount(const std::string& name, const std::string& unit, double value, double most) {
  return {.name = name,
          .unit = unit,
          .value = value,
          .peer = "the most that it may be",
          .peer_value = most,
          .ratio = value / most};
}

row against_bound(const std::string& name, const effort& how, std::chrono::nanoseconds bound,
                  const std::function<std::chrono::nanoseconds()>& once) {
  constexpr std::size_t most_runs = 11;
  std::vector<double> values;
  values.reserve(most_runs);
  for (std::size_t run = 0; run < std::min(how.rounds, most_runs); ++run) {
    values.push_back(static_cast<double>(once().count()));
  }
  const double value = quantile(values, 0.5);
  const auto longest = static_cast<double>(bound.count());
  return {.name = name,
          .unit = "ns",
          .value = value,
          .peer = "the longest that it may take",
          .peer_value = longest,
          .ratio = value / longest,
          .spread = (quantile(values, 0.75) - quantile(values, 0.25)) / value};
}

std::string to_json(const std::vector<row>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& each : rows) {
    if (!each.missing.empty()) {
      all.push_back({{"name", each.name}, {"missing", each.missing}});
      continue;
    }
    all.push_back({{"name", each.name},
                   {"value", each.value},
                   {"unit", each.unit},
                   {"peer", each.peer},
                   {"peer_value", each.peer_value},
                   {"ratio", each.ratio},
                   {"spread", each.spread}});
    if (each.ours) all.back().update({{"p90", each.ours->p90}, {"p99", each.ours->p99}});
    if (each.peers) all.back().update({{"peer_p90", each.peers->p90}, {"peer_p99", each.peers->p99}});
    if (const auto goal = wanted(each.name)) all.back()[goal->is_least ? "at_least" : "at_most"] = goal->ratio;
  }
  return all.dump(1) + '\n';
}

namespace {

// "median / p90 / p99" where the tail was looked at.
std::string median_and_tail(double median, const std::optional<tail>& rest) {
  std::ostringstream cell;
  cell << std::setprecision(3) << median;
  if (rest) cell << " / " << rest->p90 << " / " << rest->p99;
  return std::move(cell).str();
}

}  // namespace

std::string to_markdown(const std::vector<row>& rows) {
  std::ostringstream table;
  table << "| what | muster | peer | unit | ratio | wanted | spread | the peer |\n|---|---|---|---|---|---|---|---|\n"
        << std::setprecision(3);
  for (const auto& each : rows) {
    table << "| `" << each.name << "` | ";
    if (each.missing.empty()) {
      table << median_and_tail(each.value, each.ours) << " | " << median_and_tail(each.peer_value, each.peers) << " | "
            << each.unit << " | " << each.ratio << " | ";
      if (const auto goal = wanted(each.name)) table << (goal->is_least ? "≥ " : "≤ ") << goal->ratio;
      table << " | " << std::lround(each.spread * 100) << " % | " << each.peer << " |\n";
    } else {
      table << "| | | | | | " << each.missing << " |\n";
    }
  }
  return std::move(table).str();
}

std::string describe_machine() {
  utsname kernel{};
  ::uname(&kernel);
  return std::to_string(muster::effective_cpus()) + " processors, " + processor_model() + ", " + kernel.sysname + ' ' +
         kernel.release;
}

void pin(int id, std::size_t index) {
  const auto& all = processors();
  cpu_set_t one;
  CPU_ZERO(&one);
  std::size_t seen = 0;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && seen++ == index % static_cast<std::size_t>(CPU_COUNT(&all))) CPU_SET(cpu, &one);
  }
  muster::system_call("sched_setaffinity", [&] { return ::sched_setaffinity(id, sizeof one, &one); });
}

void unpin() {
  muster::system_call("sched_setaffinity", [] { return ::sched_setaffinity(0, sizeof(cpu_set_t), &processors()); });
}

}  // namespace bench
