// SPDX-License-Identifier: BSL-1.0
// The processes that are a world's ranks.
#include <utility>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/world_core.hpp>
#include <muster/parallel/rank_error.hpp>

#include "sink_call.hpp"

namespace muster::detail {

namespace {

// Who takes a world's output knows of ranks, not of the workers of its pool.
output_choice output_by_rank(const output_choice& given, std::optional<std::size_t> own_rank,
                             std::shared_ptr<const called_function> called) {
  if (!given.to()) return given;
  const output_choice noted([sink = given.to(), called](const worker_output& line) {
    const sink_call here(called.get());
    sink(line);
  });
  return noted.marked_by([own_rank, called = std::move(called)](worker_output& line) {
    if (own_rank && line.worker >= *own_rank) ++line.worker;
    line.function = called->name();
  });
}

// Likewise: a rank has its list whoever the caller is.
pinning pin_by_rank(const pinning& given, std::size_t workers, std::optional<std::size_t> own_rank) {
  const auto lists = given.resolve();
  if (lists.empty() || !own_rank) return given;
  std::vector<cpu_list> made;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const auto rank = worker < *own_rank ? worker : worker + 1;
    made.push_back(lists[rank % lists.size()]);
  }
  return pinning::to(std::move(made));
}

pool_options pool_for(const world_options& options, std::size_t workers, std::optional<std::size_t> own_rank,
                      device_choice devices, std::shared_ptr<const called_function> called) {
  return {.workers = static_cast<unsigned>(workers),
          .max_workers = static_cast<unsigned>(workers),
          .name = options.name,
          .initializer = options.initializer,
          .devices = std::move(devices),
          .pin = pin_by_rank(options.pin, workers, own_rank),
          .output = output_by_rank(options.output, own_rank, std::move(called)),
          .start_timeout = options.start_timeout,
          .log = options.log};
}

}  // namespace

void world_core::start_ranks() {
  const auto workers = ranks() - (own_rank_ ? 1 : 0);
  if (workers == 0) return;
  pool_ = std::make_unique<pool>(pool_for(options_, workers, own_rank_, devices_of_workers(), called_));
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (own_rank_ == rank) continue;
    processes_.emplace_back(*pool_, processes_.size(), rank);
    processes_.back().start(ticket_, memory_);
  }
  await_ranks({}, deadline::never());
}

device world_core::device_of(std::size_t rank) const {
  return devices_.empty() ? device::cpu() : devices_[rank % devices_.size()].device;
}

// The pool knows of workers only, of which the program's own rank is none; but they read what that one offers.
device_choice world_core::devices_of_workers() const {
  if (devices_.empty()) return {};
  std::vector<device> by_worker;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (own_rank_ != rank) by_worker.push_back(device_of(rank));
  }
  std::vector<device> seen;
  if (own_rank_) seen.push_back(device_of(*own_rank_));
  return options_.devices.choosing(std::move(by_worker), std::move(seen));
}

rank_process* world_core::process_of(std::size_t rank) noexcept {
  if (own_rank_ == rank) return nullptr;
  return &processes_[own_rank_ && rank > *own_rank_ ? rank - 1 : rank];
}

void world_core::replace_the_dead(const std::string& function, deadline until) {
  bool are_all_there = true;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    auto* const process = process_of(rank);
    if (process == nullptr) continue;
    if (process->is_vacant(*domain_)) {
      told_[rank] = 0;
      learned_ = 0;
      process->start(ticket_, memory_);
      replaced_.fetch_add(1, std::memory_order_relaxed);
    }
    are_all_there &= process->is_there(memory_);
  }
  if (!are_all_there) await_ranks(function, until);  // which asks the clock
}

// A rank that does not come before the call's end goes on starting, and the next call waits for it.
void world_core::await_ranks(const std::string& function, deadline until) {
  constexpr unsigned most_tries = 5;
  const auto started = deadline::after(options_.start_timeout);
  const bool ends_before = until.when() < started.when();
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    auto* const process = process_of(rank);
    if (process == nullptr) continue;
    for (unsigned tries = 1; !process->is_there(memory_); ++tries) {
      const auto found = [&] { return process->is_there(memory_) || process->has_ended(); };
      const bool in_time =
          sleeper_.wait(memory_.bell(), found, found, sleeper::of_unknown, ends_before ? until : started);
      if (process->is_there(memory_)) break;
      if (!in_time && ends_before) throw_starting(rank, function);
      const auto why = process->ended();
      if (!in_time || tries == most_tries || !why || !(*why == errc::worker_died)) {
        const auto reason = why ? *why : error_info(errc::timed_out, "it did not answer in time");
        throw error(reason.code(),
                    text("rank ", rank, " of world '", options_.name, "' could not be started: ", reason.describe()));
      }
      process->start(ticket_, memory_);
    }
  }
}

void world_core::throw_starting(std::size_t rank, const std::string& function) const {
  throw rank_error(
      {errc::timed_out, "it did not start in time"},
      text("rank ", rank, " of world '", options_.name, "' is still being started, so that function '", function,
           "' could not be called in time: nothing of it has happened, and the next call waits for that rank"),
      rank, function);
}

}  // namespace muster::detail
