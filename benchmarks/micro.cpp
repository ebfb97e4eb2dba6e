// SPDX-License-Identifier: BSL-1.0
// The parts of a call, each alone and in one process: what to look at when a figure of bench.json moves. Workloads:
//
//   encode_two_ints     the frame of apply(f, int, int)
//   encode_vector       the frame of a vector of so many bytes, in a block when it is large
//   token               naming a function
//   block               an arena block of so many bytes, made and given back
//   decode_result       the value of a reply
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <muster/memory/domain.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/detail/outgoing_frame.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace {

constexpr std::size_t arena_bytes = std::size_t{1} << 30U;

int add(int a, int b) { return a + b; }

void encode_two_ints(benchmark::State& state) {
  muster::domain domain({.arena_bytes = arena_bytes});
  while (state.KeepRunning()) {
    auto frame = muster::outgoing_frame::of(domain.blocks(), 2, 3);
    benchmark::DoNotOptimize(frame);
  }
}
BENCHMARK(encode_two_ints);

void encode_vector(benchmark::State& state) {
  muster::domain domain({.arena_bytes = arena_bytes});
  const std::vector<std::uint8_t> values(static_cast<std::size_t>(state.range(0)));
  while (state.KeepRunning()) {
    auto frame = muster::outgoing_frame::of(domain.blocks(), values);
    benchmark::DoNotOptimize(frame);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(encode_vector)->Arg(64)->Arg(4 << 10)->Arg(1 << 20);

void token(benchmark::State& state) {
  muster::board board({.workers = 1, .task_slots = 64}, {});
  muster::token_encoder functions(board.modules());
  while (state.KeepRunning()) benchmark::DoNotOptimize(functions.encode(&add));
}
BENCHMARK(token);

void block(benchmark::State& state) {
  muster::domain domain({.arena_bytes = arena_bytes});
  while (state.KeepRunning()) {
    auto made = domain.blocks().allocate(static_cast<std::size_t>(state.range(0)));
    benchmark::DoNotOptimize(made);
  }
}
BENCHMARK(block)->Arg(256)->Arg(16 << 10)->Arg(1 << 20);

void decode_result(benchmark::State& state) {
  std::vector<std::byte> bytes(muster::codec<int>::size(5));
  muster::codec<int>::encode(bytes, 5);
  while (state.KeepRunning()) benchmark::DoNotOptimize(muster::codec<int>::decode(bytes));
}
BENCHMARK(decode_result);

}  // namespace

BENCHMARK_MAIN();
