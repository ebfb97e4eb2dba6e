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
          {.name = "kv_push_pull_sync", .run = kv_push_pull},
          {.name = "kv_vs_all_reduce", .run = kv_beside_all_reduce}};
}

}  // namespace bench
