// SPDX-License-Identifier: BSL-1.0
// Collectives and messages. Both sides' ranks are processes bound alike, which check and time in the same way
// (rank_command.hpp) and sleep while it is not their turn.
#include <array>
#include <barrier>
#include <initializer_list>
#include <list>
#include <thread>

#include "group_ranks.hpp"
#include "mpi_ranks.hpp"
#include "ping_pong.hpp"
#include "python_peer.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kibibyte = std::size_t{1} << 10U;
constexpr std::size_t mebibyte = std::size_t{1} << 20U;

template <class Ranks>
side turns_of(const std::string& name, Ranks& ranks, rank_operation which, std::size_t bytes) {
  return {.name = name,
          .timed = [&ranks, which, bytes](
                       std::size_t count) { return ranks.run({.operation = which, .bytes = bytes, .count = count}); },
          .singly =
              [&ranks, which, bytes](std::size_t count) {
                return ranks.run_singly({.operation = which, .bytes = bytes, .count = count});
              }};
}

struct comparison_with_mpi {
  std::string name;
  rank_operation operation;
  std::size_t bytes;
  std::size_t ranks = 2;
};

row run_with_mpi(const comparison_with_mpi& which, const effort& how) {
  group_ranks own(which.ranks);
  std::list<mpi_ranks> others;
  std::vector<side> peers;
  for (const auto& each : mpi_installation::all()) {
    auto& peer = others.emplace_back(each, which.ranks);
    peers.push_back(turns_of(peer.library(), peer, which.operation, which.bytes));
  }
  const auto ours = turns_of("muster::group", own, which.operation, which.bytes);
  constexpr std::size_t largest_call = 64 * kibibyte;  // beyond it is a transfer
  return which.bytes <= largest_call ? compare_calls(which.name, how, ours, peers)
                                     : compare_with_best(which.name, how, ours, peers);
}

workload with_mpi(const comparison_with_mpi& which) {
  return {.name = which.name, .run = [=](const effort& how) { return run_with_mpi(which, how); }, .needs_mpi = true};
}

// ---- what the memory gives

/// Two threads on two processors that do to memory of their own what two ranks do in an all_reduce in place: read two
/// slices and write their sum to both.
class slice_sums {
public:
  explicit slice_sums(std::size_t slice_bytes) {
    for (auto& each : slices_) each.resize(slice_bytes / sizeof(float), 1);
  }

  nanoseconds run(std::size_t count) {
    std::barrier start_and_end(2);
    nanoseconds took{};
    const auto work = [&](std::size_t self) {
      pin(0, self);
      start_and_end.arrive_and_wait();
      const auto start = std::chrono::steady_clock::now();
      for (std::size_t index = 0; index < count; ++index) sum(slices_[2 * self], slices_[2 * self + 1]);
      start_and_end.arrive_and_wait();
      if (self == 0) took = std::chrono::steady_clock::now() - start;
    };
    const std::jthread other(work, 1);
    std::jthread(work, 0).join();
    return took;
  }

private:
  using slice = std::vector<float>;

  // By vectors, which GCC leaves out at the build's own level, and Clang does not.
#ifndef __clang__
  [[gnu::optimize("O3")]]
#endif
  static void sum(slice& left, slice& right) {
    float* __restrict first = left.data();
    float* __restrict second = right.data();
    const std::size_t count = left.size();
    for (std::size_t index = 0; index < count; ++index) {
      const float both = first[index] + second[index];
      first[index] = both;
      second[index] = both;
    }
  }

  std::array<slice, 4> slices_;
};

// Bytes per second: what both ranks read and write.
row all_reduce_limit(const effort& how) {
  constexpr std::size_t bytes = 64 * mebibyte;
  constexpr double moved = 4.0 * bytes;
  group_ranks ours(2);
  slice_sums memory(bytes / 2);
  const side peer{.name = "two threads that do the same to memory of their own",
                  .timed = [&](std::size_t count) { return memory.run(count); }};
  const auto us = turns_of("muster::group", ours, rank_operation::all_reduce, bytes);
  return as_rate(compare("allreduce_64MiB_limit", how, us, peer), moved);
}

// ---- other peers

row barrier_rtt(const effort& how) {
  group_ranks ours(2);
  ping_pong peer(callee);
  pin(0, caller);
  return compare_calls("barrier", how, turns_of("muster::group", ours, rank_operation::barrier, 0),
                       {{.name = "two processes that spin",
                         .run = [&](std::size_t count) { peer.run(count); },
                         .begin = [&] { peer.begin(); },
                         .end = [&] { peer.end(); }}});
}

row all_reduce_vs_gloo(const effort& how) {
  constexpr std::size_t bytes = 32 * mebibyte;
  group_ranks ours(2);
  python_peer gloo(with_gloo(bytes));
  return compare("allreduce_32MiB_gloo", how, turns_of("muster::group", ours, rank_operation::all_reduce, bytes),
                 {.name = "torch.distributed with gloo, torch " + python_peer::version_of("torch"),
                  .run = [&](std::size_t count) { gloo.run(count); }});
}

}  // namespace

std::vector<workload> collectives() {
  using enum rank_operation;
  std::vector<workload> all;
  for (const auto& each : std::initializer_list<comparison_with_mpi>{
           {.name = "allreduce_8B", .operation = all_reduce, .bytes = 8},
           {.name = "allreduce_64KiB", .operation = all_reduce, .bytes = 64 * kibibyte},
           {.name = "allreduce_1MiB", .operation = all_reduce, .bytes = mebibyte},
           {.name = "allreduce_16MiB", .operation = all_reduce, .bytes = 16 * mebibyte},
           {.name = "allreduce_64MiB", .operation = all_reduce, .bytes = 64 * mebibyte},
           {.name = "allreduce_64KiB_4ranks", .operation = all_reduce, .bytes = 64 * kibibyte, .ranks = 4},
           {.name = "broadcast_64MiB", .operation = broadcast, .bytes = 64 * mebibyte},
           {.name = "all_gather_64MiB", .operation = all_gather, .bytes = 64 * mebibyte},
           {.name = "reduce_scatter_64MiB", .operation = reduce_scatter, .bytes = 64 * mebibyte},
           {.name = "pingpong_8B", .operation = rank_operation::ping_pong, .bytes = 8},
           {.name = "sendrecv_64MiB", .operation = send, .bytes = 64 * mebibyte}}) {
    all.push_back(with_mpi(each));
  }
  all.push_back({.name = "allreduce_64MiB_limit", .run = all_reduce_limit});
  all.push_back({.name = "barrier", .run = barrier_rtt});
  all.push_back({.name = "allreduce_32MiB_gloo", .run = all_reduce_vs_gloo, .needs_module = "torch"});
  return all;
}

}  // namespace bench
