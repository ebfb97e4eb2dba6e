// SPDX-License-Identifier: BSL-1.0
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <muster/collectives/group.hpp>
#include <muster/parallel/world.hpp>
#include <muster/pool/ctx_pool.hpp>
#include <muster/queue/event.hpp>

#include "bounds.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;
using duration = std::chrono::nanoseconds;

void ignore_log(muster::log_level /*level*/, std::string_view /*line*/) {}

// ---- worlds

constexpr int nobody = -1;

void throw_in_rank(const muster::rank_context& context, int rank) {
  if (static_cast<int>(context.rank) == rank) throw std::runtime_error("as asked for");
}
void die_in_rank(const muster::rank_context& context, int rank) {
  if (static_cast<int>(context.rank) == rank) ::raise(SIGKILL);
}

void expect_failure(const auto& function, int rank) {
  try {
    function(rank);
  } catch (const muster::rank_error&) {
    return;
  }
  std::abort();
}

duration time_to_rank_error(void (*fault)(const muster::rank_context&, int)) {
  muster::world world({.ranks = 4, .log = ignore_log});
  const auto function = world.function(fault, muster::whole("rank"));
  function(nobody);
  return time_of([&] { expect_failure(function, 2); });
}

duration throw_to_rank_error() { return time_to_rank_error(throw_in_rank); }
duration death_to_rank_error() { return time_to_rank_error(die_in_rank); }

// ---- a rank is killed behind its own code

constexpr std::size_t victim = 2;
constexpr std::size_t late_rank = 1;

// The others go on, and wait for the late one if there is to be one.
muster::tensor take_part(const muster::rank_context& context, const muster::event& begun,
                         const muster::event& may_go_on, bool is_late, const muster::tensor& values) {
  if (is_late && context.rank == late_rank) may_go_on.wait();
  if (context.rank == victim) begun.set();
  return values;
}

// Until somebody wakes its first thread, which nothing announces.
void await_sleep(pid_t pid) {
  for (;;) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/syscall");
    long number = 0;
    if (in >> number && (number == SYS_futex || number == SYS_futex_waitv)) return;
    std::this_thread::yield();
  }
}

duration time_to_lost_rank(std::size_t count, bool is_late) {
  muster::world world({.ranks = 4, .log = ignore_log});
  const auto values = world.replicate("values", muster::tensor::ones<float>({count}));
  const auto function =
      world.function(take_part, muster::whole("begun", "may_go_on", "is_late"), muster::replicas(values),
                     muster::updates(muster::reduced_into(values, muster::max)));
  function(muster::event(), muster::event(), false);
  for (;;) {
    const muster::event begun;
    const muster::event may_go_on;
    const auto pid = world.pids()[victim];
    auto call = function.async(begun, may_go_on, is_late);
    begun.wait();
    if (is_late) await_sleep(pid);
    bool is_lost = false;
    const auto taken = time_of([&] {
      ::kill(pid, SIGKILL);
      may_go_on.set();
      is_lost = !call.get_result();
    });
    if (is_lost) return taken;  // else the call was over before
  }
}

duration death_in_exchange() { return time_to_lost_rank(1000, true); }
duration death_in_reduction() { return time_to_lost_rank(std::size_t{1} << 23U, false); }

// The caller, which is rank 0, throws in the middle of a call.
duration world_destructor() {
  std::optional<muster::world> world(std::in_place, muster::world_options{.ranks = 4, .log = ignore_log});
  expect_failure(world->function(throw_in_rank, muster::whole("rank")), 0);
  return time_of([&] { world.reset(); });
}

// ---- groups

using place = std::optional<muster::group>;

constexpr std::size_t group_size = 3;
constexpr std::size_t last_rank = 2;

place no_place_yet() { return std::nullopt; }
void take_place(place& self, const muster::group_ticket& ticket, std::size_t rank) { self.emplace(ticket, rank); }

// Without the last, so that nobody comes out of it.
void wait_for_all(place& self, const muster::event& begun) {
  if (self->rank() == last_rank) return;
  begun.set();
  self->barrier();
}

void sum_for_ever(place& self, const muster::event& begun) {
  const auto values = muster::tensor::ones<float>({std::size_t{1} << 20U});
  begun.set();
  for (;;) self->all_reduce(values, muster::reduction_op::max);
}

duration time_to_peer_lost(void (*task)(place&, const muster::event&)) {
  const muster::ctx_pool<place> ranks(no_place_yet, {.workers = group_size, .log = ignore_log});
  const muster::group_ticket ticket(group_size);
  const std::array<muster::event, group_size> begun;
  std::array<muster::future<void>, group_size> tasks;
  for (std::size_t rank = 0; rank < group_size; ++rank) ranks.on(rank).apply(take_place, ticket, rank);
  for (std::size_t rank = 0; rank < group_size; ++rank) tasks[rank] = ranks.on(rank).apply_async(task, begun[rank]);
  for (std::size_t rank = 0; rank < last_rank; ++rank) begun[rank].wait();
  const auto pid = ranks.workers()[last_rank].pid;
  return time_of([&] {
    ::kill(pid, SIGKILL);
    for (std::size_t rank = 0; rank < last_rank; ++rank) {
      if (tasks[rank].get_result()) std::abort();
    }
  });
}

duration death_in_barrier() { return time_to_peer_lost(wait_for_all); }
duration death_in_collective() { return time_to_peer_lost(sum_for_ever); }

}  // namespace

std::vector<bounded> bounds_of_ranks() {
  return {
      bound_of("throw_to_rank_error", 1s, throw_to_rank_error),
      bound_of("death_to_rank_error", 2s, death_to_rank_error),
      bound_of("death_in_barrier", 2s, death_in_barrier),
      bound_of("death_in_collective", 2s, death_in_collective),
      bound_of("death_in_exchange", 2s, death_in_exchange),
      bound_of("death_in_reduction", 2s, death_in_reduction),
      bound_of("world_destructor", 1s, world_destructor),
  };
}

}  // namespace bench
