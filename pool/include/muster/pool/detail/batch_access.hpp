// SPDX-License-Identifier: BSL-1.0
#pragma once

// What templates do with maps and streams of a pool of processes: the job of all their chunks, batches of elements that
// run, and their results. The classes are declared only (batch_run.hpp, stream_engine.hpp and progress.hpp say more).

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <typeinfo>

#include <muster/async/detail/future_handle.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/memory/detail/block.hpp>
#include <muster/pool/detail/batch.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/serialize/detail/function_token.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

class batch_run;
class map_job;
class pool_core;
class progress_meter;
class stream_engine;

/// The window of a stream, where the options give none: enough batches that no worker ever waits for the consumer.
inline constexpr std::size_t batches_per_worker = 4;

/// What runs for the chunks of a map, and how it ends.
///
/// Thread safety: a value. Lifetime: borrows all.
struct job_terms {
  function_token code;
  const std::type_info& callable;
  bool fail_fast = true;
  const task_options& options;
};

/// A job with room for so many bytes of encoded callable and bound arguments, which the caller fills.
[[nodiscard]] std::shared_ptr<map_job> make_map_job(pool_core& core, const job_terms& terms, std::size_t state_bytes);
[[nodiscard]] std::span<std::byte> state_of(const map_job& job) noexcept;
/// The blocks that go with the state.
[[nodiscard]] attachment_list& attachments_of(map_job& job) noexcept;

/// Shows how far a map or stream is, of so many elements if that is known.
[[nodiscard]] std::shared_ptr<progress_meter> make_meter(const task_options& options, std::optional<std::size_t> total);

/// Elements [first, first + count) with results: in the batch's array, or encoded in `results`.
struct batch_piece {
  std::size_t first = 0;
  std::size_t count = 0;
  block results;
};
/// Elements that failed, all in the same way.
struct batch_failure {
  std::size_t first = 0;
  std::size_t count = 0;
  error_info error;
};
/// A batch that is done.
///
/// Thread safety: a value. Lifetime: borrows all from the batch.
struct batch_results {
  std::size_t count = 0;
  std::size_t first_element = 0;  ///< its number in the whole input
  std::span<const std::byte> array;
  std::span<const batch_piece> pieces;      ///< sorted; with no failures they cover the batch
  std::span<const batch_failure> failures;  ///< sorted
};
[[nodiscard]] batch_results results_of(const batch_run& run) noexcept;

/// Starts a map. What it gives is a source of object_functions, of which map_results() tells the end.
[[nodiscard]] held_source start_map_of(const std::shared_ptr<pool_core>& core, std::shared_ptr<map_job> job,
                                       packed_batch batch, const task_options& options, const task_terms& terms,
                                       lane_route route, std::shared_ptr<progress_meter> progress);
/// Requires: it is done.
[[nodiscard]] batch_results map_results(const held_source& map) noexcept;

/// Where a stream takes its elements from.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class stream_input {
public:
  stream_input() = default;
  stream_input(const stream_input&) = delete;
  stream_input& operator=(const stream_input&) = delete;
  virtual ~stream_input() = default;

  struct taken {
    packed_batch batch;
    std::size_t count = 0;
    bool ended = false;  ///< there is nothing behind it
  };

  /// A batch of at most `most` elements; fewer where the input ends, or fails at the next one. Nothing is taken beyond
  /// those. An exception of the input comes out when it is called again.
  virtual taken pull(std::size_t most) = 0;
  /// Whether it may make wait for an element: then it is asked for one at a time.
  [[nodiscard]] virtual bool may_be_slow() const noexcept = 0;
  /// As input_pace::patience, of such an input.
  [[nodiscard]] virtual std::chrono::nanoseconds patience() const noexcept = 0;
};

struct engine_disposal {
  void operator()(stream_engine* engine) const noexcept;
};
using stream_engine_ptr = std::unique_ptr<stream_engine, engine_disposal>;

[[nodiscard]] stream_engine_ptr make_stream_engine(const std::shared_ptr<pool_core>& core, std::shared_ptr<map_job> job,
                                                   std::unique_ptr<stream_input> input, bool ordered,
                                                   const task_options& options, const task_terms& terms,
                                                   lane_route route, std::shared_ptr<progress_meter> progress);
/// The next batch, which is done; nullptr at the end. `consumed`: of those before. Throws what the input throws.
[[nodiscard]] std::shared_ptr<batch_run> next_batch(stream_engine& engine, std::size_t consumed);
/// As stream_source::when_ready and pull_one.
[[nodiscard]] std::optional<std::chrono::nanoseconds> when_next(stream_engine& engine, std::size_t consumed,
                                                                std::function<void()> then);
void pull_one(stream_engine& engine);

}  // namespace muster::detail
