// SPDX-License-Identifier: BSL-1.0
#include "bounds.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <thread>

#include <muster/device/tensor.hpp>
#include <muster/pool/p2p_pool.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>

#include "windows.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;
using duration = std::chrono::nanoseconds;

muster::pool_options quiet_pair() {
  return {.workers = 2, .log = [](muster::log_level, std::string_view) {}};
}

int add_one(int x) { return x + 1; }
void long_task() { std::this_thread::sleep_for(30s); }

duration death_to_result() {
  const muster::pool pool(quiet_pair());
  return time_of([&] { static_cast<void>(pool.apply_async([] { ::raise(SIGKILL); }).get_result()); });
}

duration exit_to_result() {
  const muster::pool pool(quiet_pair());
  return time_of([&] { static_cast<void>(pool.apply_async([] { std::exit(3); }).get_result()); });
}

duration after_all_idle_died() {
  const muster::pool pool(quiet_pair());
  for (int each = 0; each < 100; ++each) pool.apply(add_one, each);
  for (const auto& each : pool.workers()) {
    if (each.pid > 0) ::kill(each.pid, SIGKILL);
  }
  // Retried, should a dying worker have claimed it.
  return time_of([&] { pool.with({.retries = 2}).apply(add_one, 1); });
}

duration close_and_join_after_empty_stream() {
  muster::pool pool(quiet_pair());
  for ([[maybe_unused]] const int each : pool.imap(add_one, std::vector<int>())) std::abort();
  return time_of([&] {
    pool.close();
    pool.join();
  });
}

duration close_and_join_after_lost_task() {
  muster::pool pool(quiet_pair());
  static_cast<void>(pool.apply_async([] { ::raise(SIGKILL); }).get_result());
  return time_of([&] {
    pool.close();
    pool.join();
  });
}

duration terminate_full_pool() {
  muster::pool pool(quiet_pair());
  std::vector<muster::future<void>> stuck;
  stuck.reserve(2000);
  for (int each = 0; each < 2000; ++each) stuck.push_back(pool.apply_async(long_task));
  return time_of([&] { pool.terminate(); });
}

duration map_async_returns() {
  const muster::pool pool(quiet_pair());
  const std::vector<int> inputs(2000);
  muster::future<std::vector<int>> all;
  return time_of([&] {
    all = pool.map_async(
        [](int x) {
          std::this_thread::sleep_for(10ms);
          return x;
        },
        inputs);
  });
}

// ---- workers of one task, tasks dealt out in turn, tensors, events

duration each_of(int count, const std::function<void()>& what) {
  return time_of([&] {
           for (int each = 0; each < count; ++each) what();
         }) /
         count;
}

// A new process for each task, which is started when the one before has gone: a worker of one task has no early
// successor.
duration turnover() {
  const muster::pool pool({.workers = 1, .max_tasks_per_worker = 1, .log = [](muster::log_level, std::string_view) {}});
  pool.apply(add_one, 1);
  return each_of(100, [&] { pool.apply(add_one, 1); });
}

duration tasks_dealt_in_turn() {
  const muster::p2p_pool pool(quiet_pair());
  pool.apply(add_one, 1);
  return time_of([&] { run_window(100'000, [&] { return pool.apply_async(add_one, 1); }); });
}

duration call_dealt_in_turn() {
  const muster::p2p_pool pool(quiet_pair());
  for (int each = 0; each < 100; ++each) pool.apply(add_one, each);
  return each_of(1000, [&] { pool.apply(add_one, 1); });
}

unsigned last_of(const muster::tensor& given) { return given.span<std::uint8_t>().back(); }

duration tensor_of(std::size_t bytes) {
  const muster::pool pool(quiet_pair());
  const auto sent = muster::tensor::ones<std::uint8_t>({bytes});
  for (int each = 0; each < 100; ++each) pool.apply(last_of, sent);
  return each_of(1000, [&] {
    if (pool.apply(last_of, sent) != 1) std::abort();
  });
}

duration small_tensor() { return tensor_of(std::size_t{64} << 10U); }
duration large_tensor() { return tensor_of(std::size_t{256} << 20U); }

duration make_event() {
  constexpr std::size_t count = 1000;
  const muster::event first;  // what a program's first shared thing costs is not an event's
  std::vector<muster::event> kept;
  kept.reserve(count);
  return each_of(count, [&] { kept.emplace_back(); });
}

duration wait_for_what_is_set() {
  const muster::event is_set;
  const muster::event other;
  is_set.set();
  return time_of([&] {
    if (!muster::any_of(other, is_set).wait_for(1s)) std::abort();
  });
}

// Of another process, which sets it 0.9 s after the wait has begun.
duration wait_that_is_set_meanwhile() {
  const muster::event set_later;
  const muster::event other;
  const muster::event begun;
  const muster::process setter(
      [](const muster::event& start, const muster::event& what) {
        start.wait();
        std::this_thread::sleep_for(900ms);
        what.set();
      },
      begun, set_later);
  return time_of([&] {
    begun.set();
    if (!muster::any_of(other, set_later).wait_for(1s)) std::abort();
  });
}

}  // namespace

std::vector<bounded> bounds_of_pools() {
  return {
      bound_of("death_to_result", 1s, death_to_result),
      bound_of("exit_to_result", 1s, exit_to_result),
      bound_of("after_all_idle_died", 1s, after_all_idle_died),
      bound_of("close_join_empty", 500ms, close_and_join_after_empty_stream),
      bound_of("close_join_lost", 500ms, close_and_join_after_lost_task),
      bound_of("terminate_full", 1s, terminate_full_pool),
      bound_of("map_async_returns", 20ms, map_async_returns),
      bound_of("turnover", 5ms, turnover),
      bound_of("p2p_100k_tasks", 1s, tasks_dealt_in_turn),
      bound_of("p2p_round_trip", 50us, call_dealt_in_turn),
      bound_of("handover_64KiB", 200us, small_tensor),
      bound_of("handover_256MiB", 200us, large_tensor),
      bound_of("event_make", 5us, make_event),
      bound_of("any_of_already_set", 5ms, wait_for_what_is_set),
      bound_of("any_of_set_at_900ms", 950ms, wait_that_is_set_meanwhile),
  };
}

}  // namespace bench
