// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/parallel/detail/world_call_header.hpp>

namespace muster::detail {

/// A call of a function, as a trace shows it.
struct traced_call {
  std::string_view function;
  clock::time_point begin;
  std::chrono::nanoseconds total{};
  std::uint64_t input_bytes = 0;
  bool failed = false;
  std::vector<rank_times> ranks;  ///< unless it failed
};

/// Writes calls into a file, in Chrome's trace format: a row for the caller, one for each rank.
///
/// Thread safety: safe.
class call_trace {
public:
  call_trace() = default;
  call_trace(const call_trace&) = delete;
  call_trace& operator=(const call_trace&) = delete;
  /// Ends it; what cannot be written then is lost.
  ~call_trace();

  /// See world::trace_to.
  void begin(const std::filesystem::path& file, std::string_view world, std::size_t ranks) MUSTER_EXCLUDES(mutex_);
  /// See world::end_trace.
  void end() MUSTER_EXCLUDES(mutex_);

  /// Whether a trace is taken. Cost: a load.
  [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }
  /// Nothing, while none is. Waits for whoever reads the file, if that is a pipe.
  void add(const traced_call& call) MUSTER_EXCLUDES(mutex_);

private:
  void finish() MUSTER_REQUIRES(mutex_);
  void write(std::string_view event) MUSTER_REQUIRES(mutex_);
  void write_row(std::string_view name, std::size_t row) MUSTER_REQUIRES(mutex_);
  void write_rank(const traced_call& call, std::size_t rank, std::string_view function) MUSTER_REQUIRES(mutex_);

  std::atomic<bool> is_on_ = false;
  mutex mutex_;
  std::filesystem::path file_ MUSTER_GUARDED_BY(mutex_);
  std::ofstream out_ MUSTER_GUARDED_BY(mutex_);
  bool is_first_ MUSTER_GUARDED_BY(mutex_) = true;
};

}  // namespace muster::detail
