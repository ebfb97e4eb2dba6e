// SPDX-License-Identifier: BSL-1.0
#include "scaling_report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace scaling {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

long long microseconds_in(nanoseconds time) { return duration_cast<microseconds>(time).count(); }

double share(std::uint64_t count, const figures& of) { return of.tasks == 0 ? 0 : of.per_task(count); }

}  // namespace

double share_of_ideal(const row& of) {
  const std::chrono::duration<double> task = of.what.length + of.what.run_overhead;
  return of.found.tasks_per_second * task.count() / static_cast<double>(of.what.workers);
}

void print_heading(const std::string& part) {
  std::printf("\n%s\n%-14s %7s %7s %4s  %9s %5s  %9s %5s %5s %6s %6s  %6s %9s %9s\n", part.c_str(), "how", "workers",
              "task us", "from", "M tasks/s", "busy", "transfers", "slot", "head", "lost", "helped", "wakes",
              "median ns", "p99 ns");
}

void print(const row& found) {
  const auto& full = found.found;
  std::printf("%-14s %7zu %7lld %4zu  %9.3f %4.0f%%  %9.1f %5.1f %5.1f %6.2f %6.2f  %6.3f", found.name.c_str(),
              found.what.workers, microseconds_in(found.what.length), found.what.submitters,
              full.tasks_per_second / 1e6, full.utilisation * 100, full.transfers_per_task(),
              full.transfers_per_task(line_kind::slot), full.transfers_per_task(line_kind::head),
              share(full.lost, full), share(full.helped, full), share(full.events.wakes, full));
  if (found.halved.tasks != 0) {
    std::printf(" %9lld %9lld", static_cast<long long>(found.halved.delay(0.5).count()),
                static_cast<long long>(found.halved.delay(0.99).count()));
  }
  std::printf("\n");
  std::fflush(stdout);
}

namespace {

void print_counts_of(const char* who, const row& found) {
  const auto& events = found.found.events;
  const auto of = [&](std::uint64_t count) { return share(count, found.found); };
  std::printf("%-9s %7zu %7lld  %5.2f %5.2f %5.2f %5.2f %5.2f  %6.3f %6.3f %6.3f\n", who, found.what.workers,
              microseconds_in(found.what.length), of(events.of(line_kind::slot).writes),
              of(events.of(line_kind::head).writes), of(events.of(line_kind::entry).writes),
              of(events.of(line_kind::lock).writes), of(events.of(line_kind::set).writes), of(found.found.lost),
              of(found.found.helped), of(events.wakes));
}

nlohmann::json delays(const figures& of) {
  if (of.tasks == 0) return nullptr;
  return {{"median_ns", of.delay(0.5).count()},
          {"p99_ns", of.delay(0.99).count()},
          {"tasks_per_second", of.tasks_per_second},
          {"transfers", of.transfers_per_task()},
          {"wakes", share(of.events.wakes, of)}};
}

nlohmann::json to_object(const row& each) {
  const auto& found = each.found;
  return {{"part", each.part},
          {"name", each.name},
          {"workers", each.what.workers},
          {"submitters", each.what.submitters},
          {"task_us", microseconds_in(each.what.length)},
          {"tasks_per_second", found.tasks_per_second},
          {"share_of_ideal", share_of_ideal(each)},
          {"utilisation", found.utilisation},
          {"per_task",
           {{"transfers", found.transfers_per_task()},
            {"slot_transfers", found.transfers_per_task(line_kind::slot)},
            {"head_transfers", found.transfers_per_task(line_kind::head)},
            {"entry_transfers", found.transfers_per_task(line_kind::entry)},
            {"set_writes", share(found.events.of(line_kind::set).writes, found)},
            {"failed_head", share(found.events.of(line_kind::head).failed, found)},
            {"failed_slot", share(found.events.of(line_kind::slot).failed, found)},
            {"looks", share(found.looks, found)},
            {"lost", share(found.lost, found)},
            {"helped", share(found.helped, found)},
            {"sleeps", share(found.events.sleeps, found)},
            {"wakes", share(found.events.wakes, found)}}},
          {"half_load", delays(each.halved)}};
}

}  // namespace

void print_counts(const row& threads, const row& simulated) {
  std::printf("%-9s %7s %7s  %s  %s\n", "who", "workers", "task us", "writes to slot, head, entry, lock, set",
              "lost, helped, wakes; each per task");
  print_counts_of("threads", threads);
  print_counts_of("simulated", simulated);
}

std::string to_json(const std::vector<row>& rows) {
  auto all = nlohmann::json::array();
  for (const auto& each : rows) all.push_back(to_object(each));
  return all.dump(2) + "\n";
}

}  // namespace scaling
