// SPDX-License-Identifier: BSL-1.0
#pragma once

// Measures two ways to do the same thing in turns of a few milliseconds, so that whatever the machine does to one it
// does to the other, and reports ratios.

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// One way to do something: `run(n)` does it n times; or `once()` does it once, or `timed(n)` n times, prepares it as
/// long as it likes, and says how long the thing itself took.
struct side {
  std::string name;
  std::function<void(std::size_t)> run = {};
  std::function<std::chrono::nanoseconds()> once = {};
  std::function<std::chrono::nanoseconds(std::size_t)> timed = {};
  std::function<std::vector<double>(std::size_t)> singly = {};  ///< compare_calls: times of n, each by itself, in ns
  std::function<void()> begin = [] {};                          ///< before a turn; its time does not count
  std::function<void()> end = [] {};                            ///< after a turn
};

/// How long the slow ones took, beside the median: quantiles over many short measurements, in the row's unit.
struct tail {
  double p90 = 0;
  double p99 = 0;
};

/// What a comparison found: medians over all rounds.
struct row {
  std::string name;
  std::string unit = {};
  double value = 0;  ///< of ours, per operation
  std::string peer = {};
  double peer_value = 0;
  double ratio = 0;                ///< ours ÷ peer, the median of the rounds' ratios; not value ÷ peer_value
  double spread = 0;               ///< the distance of the ratios' quartiles, ÷ ratio
  std::optional<tail> ours = {};   ///< where it was looked at
  std::optional<tail> peers = {};  ///< likewise
  std::string missing = {};        ///< why it could not be measured here; nothing else is set then
};

struct effort {
  std::size_t rounds = 101;
  std::chrono::nanoseconds turn = std::chrono::milliseconds(3);
};

/// Runs `ours` and `peer` in turns. `scale` is how many units one operation counts for.
[[nodiscard]] row compare(const std::string& name, const effort& how, const side& ours, const side& peer,
                          double scale = 1);
/// The same beside the best of several peers: the one with the lowest median.
[[nodiscard]] row compare_with_best(const std::string& name, const effort& how, const side& ours,
                                    const std::vector<side>& peers, double scale = 1);

/// The same, and afterwards single calls of each side, in turns, for the tails: by `singly`, or by `run`. A side that
/// has neither has no tail.
[[nodiscard]] row compare_calls(const std::string& name, const effort& how, const side& ours,
                                const std::vector<side>& peers, double scale = 1);

/// A row of what either took, many times: medians and tails. The ratio is our 90th percentile ÷ the peer's median: what
/// nine of ten cost, in the time that the peer usually takes; the spread is our 99th ÷ the same.
[[nodiscard]] row row_of_tails(const std::string& name, const std::string& peer, const std::vector<double>& ours,
                               const std::vector<double>& peers);

/// The same as speeds: so many bytes per operation, in GB/s; the ratio is that of the speeds.
[[nodiscard]] row as_rate(row times, double bytes);

/// An amount beside the most that it may be; no rounds.
[[nodiscard]] row amount(const std::string& name, const std::string& unit, double value, double most);

/// Runs `what` and says how long it took.
template <class F>
std::chrono::nanoseconds time_of(F what) {
  const auto start = std::chrono::steady_clock::now();
  what();
  return std::chrono::steady_clock::now() - start;
}

/// Runs `once`, which says how long it took, a few times. The peer is the longest that it may take.
[[nodiscard]] row against_bound(const std::string& name, const effort& how, std::chrono::nanoseconds bound,
                                const std::function<std::chrono::nanoseconds()>& once);

[[nodiscard]] std::string to_json(const std::vector<row>& rows);
/// A table for people.
[[nodiscard]] std::string to_markdown(const std::vector<row>& rows);

/// The machine in a line: processors, model, kernel.
[[nodiscard]] std::string describe_machine();

/// Binds a process or thread (0: the calling one) to one of the processors that this process may use: the `index`-th.
void pin(int id, std::size_t index);
/// Lets the calling thread run on all of them again.
void unpin();

}  // namespace bench
