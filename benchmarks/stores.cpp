// SPDX-License-Identifier: BSL-1.0
// The versioned store.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/params.hpp>
#include <muster/pool/process.hpp>

#include "group_ranks.hpp"
#include "python_peer.hpp"
#include "redis_peer.hpp"
#include "windows.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

constexpr std::int64_t large_bytes = std::int64_t{64} << 20U;
using short_value = std::array<std::uint64_t, 8>;

// Each call's time, the median over rounds of many.
template <class Call>
double nanoseconds_per_call(const effort& how, std::size_t calls, const Call& call) {
  std::vector<double> times;
  for (std::size_t round = 0; round < how.rounds; ++round) {
    const auto time = time_of([&] {
      for (std::size_t each = 0; each < calls; ++each) call();
    });
    times.push_back(static_cast<double>(time.count()) / static_cast<double>(calls));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// A store with a tensor of 64 MiB that another process has pushed.
struct filled_store {
  const muster::store_ticket ticket{muster::store_options()};
  const muster::store here{ticket};

  filled_store() {
    const muster::process other(
        [](const muster::store_ticket& of) {
          muster::store(of).push("large", muster::tensor::ones<std::uint8_t>({large_bytes}));
        },
        ticket);
    other.join();
  }
};

row store_pull(const effort& how) {
  const filled_store store;
  const auto time = nanoseconds_per_call(how, 10'000, [&] {
    if (store.here.pull<muster::tensor>("large").value.nbytes() != static_cast<std::size_t>(large_bytes)) std::abort();
  });
  return amount("store_pull_us", "ns", time, 2000);
}

row store_push_short(const effort& how) {
  const muster::store store{muster::store_ticket(muster::store_options())};
  short_value value{};
  const auto time = nanoseconds_per_call(how, 10'000, [&] {
    ++value[0];
    if (!store.push("short", value)) std::abort();
  });
  return amount("store_push_64B", "ns", time, 1000);
}

row store_push_large(const effort& how) {
  const muster::store store{muster::store_ticket(muster::store_options())};
  const auto value = muster::tensor::ones<std::uint8_t>({large_bytes});
  const auto room = muster::tensor::zeros<std::uint8_t>({large_bytes});
  const side ours{.name = "store.push", .run = [&](std::size_t count) {
                    for (std::size_t each = 0; each < count; ++each) store.push("large", value);
                  }};
  const side peer{.name = "memcpy", .run = [&](std::size_t count) {
                    for (std::size_t each = 0; each < count; ++each) {
                      std::memcpy(room.data(), value.data(), static_cast<std::size_t>(large_bytes));
                    }
                  }};
  return compare("store_push_64MiB", how, ours, peer);
}

// ---- beside stores that copy

// Lifetime: borrows the store.
side pulls_of(const muster::store& store) {
  return {.name = "store.pull", .run = [&store](std::size_t count) {
            for (std::size_t each = 0; each < count; ++each) {
              if (store.pull<muster::tensor>("large").value.size() == 0) std::abort();
            }
          }};
}

row store_pull_beside_redis(const effort& how) {
  const filled_store store;
  redis_peer redis(static_cast<std::size_t>(large_bytes));
  const side peer{.name = "Redis " + redis_peer::version() + " GET over a Unix socket",
                  .run = [&](std::size_t count) { redis.get(count); }};
  return compare("store_pull_vs_redis", how, pulls_of(store.here), peer);
}

row store_pull_beside_mxnet(const effort& how) {
  const filled_store store;
  python_peer mxnet(with_mxnet(static_cast<std::size_t>(large_bytes),
                               "for _ in range(count): kv.pull('w', out=out); out.wait_to_read()"));
  const side peer{.name = "MXNet 1.9.1 kvstore.pull", .run = [&](std::size_t count) { mxnet.run(count); }};
  return compare("store_pull_vs_mxnet", how, pulls_of(store.here), peer);
}

/// Processes that pull a value of 1 KiB again and again, each for itself, and say how long a pull took.
class readers {
public:
  readers(const muster::store_ticket& ticket, std::size_t count) {
    for (std::size_t each = 0; each < count; ++each) all_.emplace_back(pull_again_and_again, ticket, each);
  }
  readers(const readers&) = delete;
  readers& operator=(const readers&) = delete;
  ~readers() {
    for (const auto& each : all_) each.join();
  }

private:
  static void pull_again_and_again(const muster::store_ticket& ticket, std::size_t rank) {
    const muster::store store(ticket);
    constexpr std::size_t calls = 20'000;
    std::vector<double> times(calls);
    for (auto& each : times) {
      each = static_cast<double>(time_of([&] { static_cast<void>(store.pull<muster::tensor>("small")); }).count());
    }
    std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
    store.push(static_cast<int>(rank), times[calls / 2]);
  }

  std::vector<muster::process> all_;
};

// The median pull of the slowest of so many readers, while the value is pushed all the time, or never.
double slowest_reader(std::size_t count, bool is_pushed) {
  const muster::store_ticket ticket((muster::store_options()));
  const muster::store store(ticket);
  const auto value = muster::tensor::ones<std::uint8_t>({1024});
  store.push("small", value);
  const auto have_ended = [&] {
    for (std::size_t each = 0; each < count; ++each) {
      if (!store.contains(static_cast<int>(each))) return false;
    }
    return true;
  };
  {
    const readers all(ticket, count);
    while (is_pushed && !have_ended()) store.push("small", value);
  }
  double slowest = 0;
  for (std::size_t each = 0; each < count; ++each) {
    slowest = std::max(slowest, store.pull<double>(static_cast<int>(each)).value);
  }
  return slowest;
}

row store_readers(const effort& how) {
  std::vector<double> beside;
  std::vector<double> alone;
  for (std::size_t round = 0; round < std::min<std::size_t>(how.rounds, 11); ++round) {
    alone.push_back(slowest_reader(1, false));
    beside.push_back(slowest_reader(8, true));
  }
  return row_of_tails("store_8_readers", "one reader, and no writer", beside, alone);
}

// ---- the key-value store

const muster::tensor& large_gradient() {
  static const auto made = muster::tensor::ones<float>({large_bytes / sizeof(float)});
  return made;
}

// A worker that takes part in as many rounds as the first one says, one after the other.
void push_as_told(const muster::kv_ticket& ticket) {
  const muster::kv_store kv(ticket, 1);
  kv.init("w", large_gradient());
  for (std::uint64_t round = 1;; ++round) {
    if (!kv.values().wait_for("rounds", round, std::chrono::hours(1))) return;
    if (!kv.values().pull<bool>("rounds").value) return;
    kv.push("w", large_gradient());
  }
}

/// Two workers in two processes, and a value of 64 MiB.
class two_workers {
public:
  explicit two_workers(const muster::update_rule& rule) {
    first_.init("w", large_gradient());
    first_.set_optimizer(rule);
  }
  two_workers(const two_workers&) = delete;
  two_workers& operator=(const two_workers&) = delete;
  ~two_workers() {
    first_.values().push("rounds", false);
    second_.join();
  }

  void push_pull() {
    first_.values().push("rounds", true);
    if (first_.push_pull("w", large_gradient()).nbytes() != static_cast<std::size_t>(large_bytes)) std::abort();
  }

private:
  const muster::kv_ticket ticket_{muster::kv_kind::sync, {.workers = 2, .owners = 1}};
  const muster::process second_{push_as_told, ticket_};
  const muster::kv_store first_{ticket_, 0};
};

row kv_push_pull(const effort& how) {
  two_workers both(muster::sgd{.rate = 0.1});
  const auto time = nanoseconds_per_call(how, 3, [&] { both.push_pull(); });
  return amount("kv_push_pull_sync", "ns", time, 73e6);
}

std::string lack_of_mxnet() {
  if (python_peer::has("mxnet", "mxnet")) return {};
  return "peer missing: " + python_peer::interpreter("mxnet") + " has no mxnet: scripts/bench installs it";
}

row kv_beside_mxnet(const effort& how) {
  const muster::kv_store kv(muster::kv_kind::local);
  kv.init("w", large_gradient());
  kv.set_optimizer(muster::sgd{.rate = 0.1});
  const auto second = large_gradient().clone();
  python_peer mxnet(
      with_mxnet(static_cast<std::size_t>(large_bytes),
                 "for _ in range(count): kv.push('w', [a, b]); kv.pull('w', out=out); out.wait_to_read()"));
  const side ours{.name = "kv_store.push, pull", .run = [&](std::size_t count) {
                    for (std::size_t each = 0; each < count; ++each) {
                      kv.push("w", {large_gradient(), second});
                      if (kv.pull("w").size() == 0) std::abort();
                    }
                  }};
  const side peer{.name = "MXNet 1.9.1, local", .run = [&](std::size_t count) { mxnet.run(count); }};
  return compare("kv_push_pull_vs_mxnet", how, ours, peer);
}

row kv_beside_all_reduce(const effort& how) {
  two_workers both{muster::assign_rule()};
  group_ranks group(2);
  const side ours{.name = "kv_store.push_pull", .run = [&](std::size_t count) {
                    for (std::size_t each = 0; each < count; ++each) both.push_pull();
                  }};
  const side peer{.name = "group.all_reduce", .timed = [&](std::size_t count) {
                    return group.run({.operation = rank_operation::all_reduce, .bytes = large_bytes, .count = count});
                  }};
  return compare("kv_vs_all_reduce", how, ours, peer);
}

}  // namespace

std::vector<workload> stores() {
  return {{.name = "store_pull_us", .run = store_pull, .needs_two_processors = false},
          {.name = "store_push_64B", .run = store_push_short, .needs_two_processors = false},
          {.name = "store_push_64MiB", .run = store_push_large, .needs_two_processors = false},
          {.name = "store_pull_vs_redis", .run = store_pull_beside_redis, .hindrance = redis_peer::hindrance},
          {.name = "store_pull_vs_mxnet", .run = store_pull_beside_mxnet, .hindrance = lack_of_mxnet},
          {.name = "store_8_readers", .run = store_readers},
          {.name = "kv_push_pull_sync", .run = kv_push_pull},
          {.name = "kv_push_pull_vs_mxnet", .run = kv_beside_mxnet, .hindrance = lack_of_mxnet},
          {.name = "kv_vs_all_reduce", .run = kv_beside_all_reduce}};
}

}  // namespace bench
