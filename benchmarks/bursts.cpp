// SPDX-License-Identifier: BSL-1.0
// Calls in bursts of 3 ms, 3 ms apart, nothing bound: calm, beside busy loops, and on one processor. The peer is
// asio::thread_pool(1) with futures in the same conditions, in turns of some bursts each. A value is the time per call
// of one burst.
#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <muster/base/cpu_list.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/collectives/group.hpp>
#include <muster/parallel/world.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/p2p_queue.hpp>

#include "workloads.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;
using call = std::function<void()>;

/// Threads that do nothing but keep processors busy.
class busy_loops {
public:
  explicit busy_loops(unsigned count) {
    for (unsigned each = 0; each < count; ++each) {
      threads_.push_back(muster::start_thread([this] {
        while (!stop_.load(std::memory_order_relaxed)) continue;
      }));
    }
  }
  busy_loops(const busy_loops&) = delete;
  busy_loops& operator=(const busy_loops&) = delete;
  ~busy_loops() {
    stop_ = true;
    for (auto& each : threads_) each.join();
  }

private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

/// While it lives, the process has one processor, as far as it and what it starts can see.
class one_processor {
public:
  one_processor() {
    pin(0, caller);
    muster::detail::note_process_cpus();
  }
  one_processor(const one_processor&) = delete;
  one_processor& operator=(const one_processor&) = delete;
  ~one_processor() {
    unpin();
    muster::detail::note_process_cpus();
  }
};

// Nanoseconds per call, in one burst.
double burst(const call& what) {
  constexpr auto length = 3ms;
  constexpr auto pause = 3ms;
  std::this_thread::sleep_for(pause);
  const auto start = std::chrono::steady_clock::now();
  std::size_t calls = 0;
  std::chrono::nanoseconds taken{};
  do {
    what();
    ++calls;
    taken = std::chrono::steady_clock::now() - start;
  } while (taken < length);
  return std::chrono::duration<double, std::nano>(taken).count() / static_cast<double>(calls);
}

row compare_bursts(const std::string& name, const effort& how, const call& ours, const call& peer) {
  constexpr std::size_t bursts_per_turn = 10;
  std::vector<double> our_times;
  std::vector<double> peer_times;
  for (std::size_t turn = 0; turn < (how.rounds * 3 + bursts_per_turn - 1) / bursts_per_turn; ++turn) {
    for (std::size_t each = 0; each < bursts_per_turn; ++each) our_times.push_back(burst(ours));
    for (std::size_t each = 0; each < bursts_per_turn; ++each) peer_times.push_back(burst(peer));
  }
  return row_of_tails(name, "asio::thread_pool(1), std::future", std::move(our_times), std::move(peer_times));
}

row beside_asio(const std::string& name, const effort& how, const call& ours) {
  boost::asio::thread_pool threads(1);
  const auto peer = [&] {
    boost::asio::post(threads, boost::asio::use_future([a = 2, b = 3] { return a + b; })).get();
  };
  return compare_bursts(name, how, ours, peer);
}

int add(int a, int b) { return a + b; }

row burst_pool(const std::string& name, const effort& how, unsigned workers) {
  const muster::pool pool({.workers = workers});
  return beside_asio(name, how, [&] { pool.apply(add, 2, 3); });
}

row burst_thread_pool(const std::string& name, const effort& how) {
  const muster::thread_pool pool({.workers = 1});
  return beside_asio(name, how, [&] { pool.apply(add, 2, 3); });
}

void nothing() {}

row burst_world(const std::string& name, const effort& how) {
  muster::world world({.ranks = 2});
  const auto empty = world.function(nothing);
  return beside_asio(name, how, [&] { empty(); });
}

// As long as rank 0 says so.
void answer_sums(const muster::group_ticket& ticket) {
  muster::group group(ticket, 1);
  auto goes_on = muster::tensor::zeros<float>({1});
  do {
    goes_on.fill(0.F);
    group.all_reduce(goes_on);
  } while (goes_on.item<float>() != 0);
}

row burst_group(const std::string& name, const effort& how) {
  const muster::pool pool({.workers = 1});
  const muster::group_ticket ticket(2);
  auto other = pool.apply_async(answer_sums, ticket);
  muster::group group(ticket, 0);
  auto goes_on = muster::tensor::zeros<float>({1});
  const auto sum = [&](float own) {
    goes_on.fill(own);
    group.all_reduce(goes_on);
  };
  const auto found = beside_asio(name, how, [&] { sum(1); });
  sum(0);
  other.get();
  return found;
}

using numbers = muster::p2p_queue<int>;

void echo(const numbers& in, const numbers& out) {
  while (const auto number = in.pop()) out.push(*number);
}

row burst_queue(const std::string& name, const effort& how) {
  const muster::pool pool({.workers = 1});
  const numbers there(16);
  const numbers back(16);
  auto other = pool.apply_async(echo, there, back);
  const auto found = beside_asio(name, how, [&] {
    there.push(1);
    if (back.pop() != 1) std::abort();
  });
  there.close();
  other.get();
  return found;
}

struct condition {
  const char* suffix;
  unsigned loops;
  bool is_bound;
};

}  // namespace

std::vector<workload> bursts() {
  using measured = std::function<row(const std::string&, const effort&)>;
  const std::vector<std::pair<std::string, measured>> all = {
      {"burst_pool", [](const std::string& name, const effort& how) { return burst_pool(name, how, 1); }},
      {"burst_pool_2", [](const std::string& name, const effort& how) { return burst_pool(name, how, 2); }},
      {"burst_thread_pool", burst_thread_pool},
      {"burst_world", burst_world},
      {"burst_group", burst_group},
      {"burst_queue", burst_queue}};
  constexpr std::array conditions = {condition{.suffix = "", .loops = 0, .is_bound = false},
                                     condition{.suffix = "_busy", .loops = 1, .is_bound = false},
                                     condition{.suffix = "_busy_2", .loops = 2, .is_bound = false},
                                     condition{.suffix = "_busy_4", .loops = 4, .is_bound = false},
                                     condition{.suffix = "_bound", .loops = 0, .is_bound = true}};
  std::vector<workload> rows;
  for (const auto& [name, run] : all) {
    for (const auto& where : conditions) {
      const auto full = name + where.suffix;
      rows.push_back({.name = full, .run = [full, run, where](const effort& how) {
                        std::optional<one_processor> bound;
                        if (where.is_bound) bound.emplace();
                        const busy_loops beside(where.loops);
                        return run(full, how);
                      }});
    }
  }
  return rows;
}

}  // namespace bench
