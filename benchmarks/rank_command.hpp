// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a rank of a group, ours or MPI's, is told to do, and how it does it: both sides prepare, check and time alike.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace bench {

/// An operation that ranks do together. Elements are f32.
enum class rank_operation : std::uint32_t {
  barrier,
  all_reduce,      ///< the sum, in place
  broadcast,       ///< from rank 0
  all_gather,      ///< in place: each rank's part lies in its place of the whole
  reduce_scatter,  ///< the sum of the whole; a part to each
  ping_pong,       ///< from rank 0 to rank 1 and back
  send             ///< from rank 0 to rank 1
};

/// What goes to every rank.
struct rank_command {
  rank_operation operation = rank_operation::barrier;
  std::uint64_t bytes = 0;   ///< of the whole
  std::uint64_t count = 0;   ///< how many times
  std::uint64_t singly = 0;  ///< not 0: each is timed by itself
};

/// What a rank of the peer says when it is there.
struct rank_greeting {
  std::uint32_t rank = 0;
  std::int32_t pid = 0;
  char library[64] = {};
};

/// How many elements of a whole of `count` the operation writes in each rank.
inline std::size_t result_size(rank_operation which, std::size_t count, std::size_t ranks) {
  return which == rank_operation::reduce_scatter ? count / ranks : count;
}

/// The operations write where they read, or elsewhere.
inline bool is_in_place(rank_operation which) {
  return which == rank_operation::all_reduce || which == rank_operation::broadcast ||
         which == rank_operation::all_gather;
}

/// One command, for ranks that have
///   rank(), size()
///   give_room(command)             memory for it; then input() and output(), spans of float, the same if is_in_place()
///   perform(operation)             does it once
///
/// Thread safety: an object belongs to one thread.
template <class Ranks>
class rank_turn {
public:
  rank_turn(Ranks& ranks, const rank_command& what) : ranks_(ranks), what_(what) { ranks_.give_room(what); }

  /// Looks at the results of one, warms up, and says how long all took. A wrong result ends the program.
  std::chrono::nanoseconds run() {
    check_once();
    repeat(what_.count / 8 + 1);
    ranks_.perform(rank_operation::barrier);
    const auto start = std::chrono::steady_clock::now();
    repeat(what_.count);
    ranks_.perform(rank_operation::barrier);
    return std::chrono::steady_clock::now() - start;
  }

  /// The same, and how long each took here, in ns.
  std::vector<double> run_singly() {
    check_once();
    repeat(what_.count / 8 + 1);
    ranks_.perform(rank_operation::barrier);
    std::vector<double> times(what_.count);
    for (auto& each : times) {
      const auto start = std::chrono::steady_clock::now();
      repeat(1);
      each = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    }
    ranks_.perform(rank_operation::barrier);
    return times;
  }

private:
  static constexpr float nothing = -1;

  void repeat(std::size_t count) {
    for (std::size_t index = 0; index < count; ++index) ranks_.perform(what_.operation);
  }

  static float value(std::size_t rank, std::size_t index) { return static_cast<float>(index % 61 + rank); }
  [[nodiscard]] float sum(std::size_t index) const {
    float all = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) all += value(rank, index);
    return all;
  }
  [[nodiscard]] std::size_t owner(std::size_t index) const { return index / (ranks_.input().size() / ranks_.size()); }

  [[nodiscard]] float given(std::size_t index) const {
    const auto self = ranks_.rank();
    if (what_.operation == rank_operation::broadcast && self != 0) return nothing;
    if (what_.operation == rank_operation::all_gather && owner(index) != self) return nothing;
    return value(self, index);
  }

  [[nodiscard]] float expected(std::size_t index) const {
    const auto self = ranks_.rank();
    switch (what_.operation) {
      case rank_operation::barrier: break;
      case rank_operation::all_reduce: return sum(index);
      case rank_operation::broadcast: return value(0, index);
      case rank_operation::all_gather: return value(owner(index), index);
      case rank_operation::reduce_scatter: return sum(self * ranks_.output().size() + index);
      case rank_operation::ping_pong: return value(1 - self, index);
      case rank_operation::send: return self == 0 ? nothing : value(0, index);
    }
    return nothing;
  }

  void check_once() {
    const auto in = ranks_.input();
    const auto out = ranks_.output();
    for (auto& each : out) each = nothing;
    for (std::size_t index = 0; index < in.size(); ++index) in[index] = given(index);
    ranks_.perform(what_.operation);
    for (std::size_t index = 0; index < out.size(); ++index) {
      if (out[index] == expected(index)) continue;
      std::fprintf(stderr, "rank %zu: element %zu is %g instead of %g\n", ranks_.rank(), index,
                   static_cast<double>(out[index]), static_cast<double>(expected(index)));
      std::abort();
    }
  }

  Ranks& ranks_;
  const rank_command what_;
};

}  // namespace bench
