// SPDX-License-Identifier: BSL-1.0
#include <cstdlib>
#include <cstring>
#include <future>
#include <numeric>
#include <thread>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <muster/pool/p2p_pool.hpp>
#include <muster/pool/thread_pool.hpp>

#include "mutex_pool.hpp"
#include "windows.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

namespace asio = boost::asio;

row submit_throughput(const effort& how) {
  asio::thread_pool threads(1);
  asio::post(threads, asio::use_future([] { pin(0, callee); })).get();
  const bound_pool pool;
  const side peer{.name = "asio::thread_pool(1), futures", .run = [&](std::size_t count) {
                    run_window(count,
                               [&] { return asio::post(threads, asio::use_future([a = 2, b = 3] { return a + b; })); });
                  }};
  return compare("submit_throughput", how, window_on(*pool), peer);
}

// Threads on both sides: what a task costs in one process.
row thread_pool_submit(const effort& how) {
  asio::thread_pool threads(1);
  asio::post(threads, asio::use_future([] { pin(0, callee); })).get();
  const muster::thread_pool pool({.workers = 1});
  pool.apply([] { pin(0, callee); });
  pin(0, caller);
  const side ours{.name = "apply_async", .run = [&](std::size_t count) {
                    run_window(count, [&] { return pool.apply_async([](int a, int b) { return a + b; }, 2, 3); });
                  }};
  const side peer{.name = "asio::thread_pool(1), std::packaged_task", .run = [&](std::size_t count) {
                    run_window(count, [&] {
                      return asio::post(threads, std::packaged_task<int()>([a = 2, b = 3] { return a + b; }));
                    });
                  }};
  auto found = compare("thread_pool_submit", how, ours, peer);
  unpin();
  return found;
}

// Fires a window of tasks and collects their results, again and again.
row submit_vs_tbb(const effort& how) {
  const muster::pool pool;
  std::vector<int> results(window);
  const side ours{.name = "apply_async", .run = [&](std::size_t count) {
                    std::vector<muster::future<int>> fired(window);
                    for (std::size_t done = 0; done < count; done += window) {
                      for (auto& each : fired) each = pool.apply_async(added, 2, 3);
                      for (std::size_t index = 0; index < window; ++index) results[index] = fired[index].get();
                    }
                  }};
  const side peer{.name = "tbb::task_group", .run = [&](std::size_t count) {
                    for (std::size_t done = 0; done < count; done += window) {
                      tbb::task_group group;
                      for (auto& each : results) group.run([&each] { each = added(2, 3); });
                      group.wait();
                    }
                  }};
  return compare("submit_vs_tbb", how, ours, peer);
}

// Dealt out in turn, beside taken by whoever is free.
row p2p_throughput(const effort& how) {
  const muster::p2p_pool dealt({.workers = 2});
  const muster::pool shared({.workers = 2});
  const side ours{.name = "p2p_pool",
                  .run = [&](std::size_t count) { run_window(count, [&] { return dealt.apply_async(added, 2, 3); }); }};
  const side peer{.name = "pool", .run = [&](std::size_t count) {
                    run_window(count, [&] { return shared.apply_async(added, 2, 3); });
                  }};
  return compare("p2p_throughput", how, ours, peer);
}

row map_tiny(const effort& how) {
  constexpr std::size_t elements = 1'000'000;
  std::vector<int> input(elements);
  std::iota(input.begin(), input.end(), 0);
  const muster::pool pool;
  const side ours{.name = "map", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      if (pool.map([](int x) { return x + 1; }, input).back() != static_cast<int>(elements))
                        std::abort();
                    }
                  }};
  const side peer{.name = "tbb::parallel_for", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      std::vector<int> output(elements);
                      tbb::parallel_for(tbb::blocked_range<std::size_t>(0, elements), [&](const auto& range) {
                        for (auto at = range.begin(); at != range.end(); ++at) output[at] = input[at] + 1;
                      });
                      if (output.back() != static_cast<int>(elements)) std::abort();
                    }
                  }};
  return compare("map_tiny", how, ours, peer, elements);
}

// A chain of multiplications: the same work wherever it runs.
std::uint64_t busy(std::uint64_t steps) {
  std::uint64_t value = steps;
  for (; steps > 0; --steps) {
    value = value * 6364136223846793005U + 1442695040888963407U;
    asm volatile("" : "+r"(value));  // no closed form
  }
  return value;
}

std::uint64_t steps_for(std::chrono::nanoseconds time) {
  constexpr std::uint64_t many = 1'000'000;
  const auto taken = std::min({time_of([] { busy(many); }), time_of([] { busy(many); }), time_of([] { busy(many); })});
  return many * static_cast<std::uint64_t>(time.count()) / static_cast<std::uint64_t>(taken.count());
}

std::vector<side> thread_pools(std::uint64_t steps, mutex_pool& simple, asio::thread_pool& threads,
                               tbb::task_arena& arena) {
  const auto simple_task = [&simple, steps] {
    auto task = std::make_shared<std::packaged_task<std::uint64_t()>>([steps] { return busy(steps); });
    simple.submit([task] { (*task)(); });
    return task->get_future();
  };
  const auto asio_task = [&threads, steps] {
    return asio::post(threads, asio::use_future([steps] { return busy(steps); }));
  };
  const auto tbb_tasks = [&arena, steps](std::size_t count) {
    arena.execute([&] {
      tbb::task_group group;
      std::vector<std::uint64_t> results(count);
      for (auto& each : results) group.run([&each, steps] { each = busy(steps); });
      group.wait();
    });
  };
  return {{.name = "queue under a mutex, 2 threads", .run = [=](std::size_t count) { run_window(count, simple_task); }},
          {.name = "asio::thread_pool(2), futures", .run = [=](std::size_t count) { run_window(count, asio_task); }},
          {.name = "tbb::task_group, 2 threads", .run = tbb_tasks}};
}

row busy_tasks(const std::string& name, const effort& how, std::chrono::nanoseconds length) {
  const auto steps = steps_for(length);
  const muster::pool pool({.workers = 2});
  mutex_pool simple(2);
  asio::thread_pool threads(2);
  tbb::task_arena arena(2);
  const side ours{.name = "apply_async, 2 workers",
                  .run = [&](std::size_t count) { run_window(count, [&] { return pool.apply_async(busy, steps); }); }};
  return compare_with_best(name, how, ours, thread_pools(steps, simple, threads, arena));
}

row task_1us(const effort& how) { return busy_tasks("task_1us", how, std::chrono::microseconds(1)); }
row task_10us(const effort& how) { return busy_tasks("task_10us", how, std::chrono::microseconds(10)); }

// Per byte, so that the ratio of times is the inverse of the ratio of speeds.
row copy_large(const effort& how) {
  constexpr std::size_t bytes = std::size_t{64} << 20U;
  const std::vector<char> payload(bytes, 'x');
  std::vector<char> target(bytes);
  const bound_pool pool({.workers = 1, .worker_heap_bytes = 4 * bytes});
  const side ours{.name = "vector argument", .once = [&] {
                    return time_of([&] {
                      if (pool->apply([](const std::vector<char>& all) { return all.size(); }, payload) != bytes)
                        std::abort();
                    });
                  }};
  const side peer{.name = "memcpy", .once = [&] {
                    return time_of([&] {
                      std::memcpy(target.data(), payload.data(), bytes);
                      asm volatile("" : : "r"(target.data()) : "memory");
                    });
                  }};
  return as_rate(compare("copy_64MiB", how, ours, peer), bytes);
}

row two_submitters(const effort& how) {
  const muster::pool pool({.workers = 1});
  const side two{.name = "two threads", .run = [&](std::size_t count) {
                   std::jthread other([&] { run_window(count / 2, [&] { return pool.apply_async(added, 2, 3); }); });
                   run_window(count - count / 2, [&] { return pool.apply_async(added, 2, 3); });
                 }};
  auto one = window_on(pool);
  one.name = "one thread";
  return compare("two_submitters", how, two, one);
}

}  // namespace

std::vector<workload> throughputs() {
  return {{.name = "submit_throughput", .run = submit_throughput},
          {.name = "thread_pool_submit", .run = thread_pool_submit},
          {.name = "submit_vs_tbb", .run = submit_vs_tbb},
          {.name = "p2p_throughput", .run = p2p_throughput},
          {.name = "map_tiny", .run = map_tiny, .needs_two_processors = false},
          {.name = "task_1us", .run = task_1us},
          {.name = "task_10us", .run = task_10us},
          {.name = "copy_64MiB", .run = copy_large},
          {.name = "two_submitters", .run = two_submitters}};
}

}  // namespace bench
