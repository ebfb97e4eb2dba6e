// SPDX-License-Identifier: BSL-1.0
// The versioned store.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/params.hpp>
#include <muster/pool/process.hpp>

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

}  // namespace

std::vector<workload> stores() {
  return {{.name = "store_pull_us", .run = store_pull, .needs_two_processors = false},
          {.name = "store_push_64B", .run = store_push_short, .needs_two_processors = false},
          {.name = "store_push_64MiB", .run = store_push_large, .needs_two_processors = false}};
}

}  // namespace bench
