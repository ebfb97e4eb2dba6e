// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <muster/base/detail/duration.hpp>
#include <muster/pool/priority.hpp>
#include <muster/queue/detail/task_terms.hpp>
#include <muster/serialize/transfer.hpp>

namespace muster {

/// A short name for a task or map, shown in its errors. Longer names are cut.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class task_label {
public:
  /// How many bytes of a name are kept.
  static constexpr std::size_t most_bytes = 47;

  constexpr task_label() noexcept = default;
  /// The first most_bytes bytes of the text.
  template <std::convertible_to<std::string_view> Text>
  constexpr task_label(const Text& text) noexcept {  // NOLINT: reads like a string
    const std::string_view name = text;
    size_ = static_cast<unsigned char>(name.size() < most_bytes ? name.size() : most_bytes);
    name.copy(bytes_.data(), size_);
  }

  /// Returns the name as it was kept. Lifetime: that of this object.
  [[nodiscard]] constexpr std::string_view view() const noexcept { return {bytes_.data(), size_}; }

private:
  std::array<char, most_bytes> bytes_{};
  unsigned char size_ = 0;
};

/// How one call is to be treated: `pool.with({.retries = 2}).map(f, xs)`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct task_options {
  /// How long the whole call may take, from submitting it on: waiting for a worker, running, and being tried again. A
  /// task, or an element of a map or stream, that has not ended by then ends with errc::timed_out: at once if no worker
  /// has it, else by the death of its worker, as with `timeout`. Less than 0: it is over already. 0: no matter when,
  /// and so is the longest time that there is. While the program is stopped (SIGSTOP, a debugger) its time stands
  /// still, as that of `timeout`, as far as the pool can know: docs/design/tasks.md.
  std::chrono::nanoseconds deadline{};
  /// How often a task (of a map: an element) is run again after it failed for one of the reasons in `retry_on`. 0, the
  /// default, because only you know whether running it twice does harm. A task that has killed as many workers as
  /// pool_options::quarantine_after says ends with errc::quarantined instead. Not once it was asked to stop.
  unsigned retries = 0;
  /// For which reasons: `retry::death() | retry::timeout() | retry::exceptions<network_error>()`.
  retry_reasons retry_on = retry::death();
  /// How long it waits before the second attempt, and twice as long before each further one, up to a minute; a quarter
  /// more or less by chance. No worker is occupied meanwhile. 0: it is tried again at once.
  std::chrono::nanoseconds retry_delay{};
  /// How long the task (of a map: each element) may run. Longer, and its worker is killed and replaced, and the task
  /// ends with errc::timed_out, unless that is a reason to try it again; nothing else is lost: a worker that is about
  /// to be killed has no other task. Waiting for a worker does not count. 0: as long as it likes, and so is the
  /// longest time that there is (nanoseconds::max()); less than 0 is refused.
  std::chrono::nanoseconds timeout{};
  /// Which of the tasks that wait for a worker comes first. Tasks for one worker (`on`) come before all others, in
  /// order.
  muster::priority priority = muster::priority::normal;
  /// map and imap: elements per chunk; 0: by time, growing until a chunk takes about a millisecond. Of inputs of imap
  /// that may make wait (stream) each element is a chunk.
  std::size_t chunk = 0;
  /// imap: how many elements may be taken from the input ahead of what has been consumed; 0: four chunks a worker.
  std::size_t window = 0;
  /// Whether tensors and shared objects among the arguments go as the same memory, as copies, or are given away.
  muster::transfer transfer = muster::transfer::reference;
  /// Shown in the errors of the call's tasks (task_place::label).
  task_label label{};
  /// map, map_async and imap of a pool of processes: how far it is is shown on stderr while somebody waits for it, by
  /// that thread: on a terminal in one line that is drawn again, at most ten times a second; elsewhere in a line every
  /// ten seconds. What is done sooner shows nothing, and so do pools of threads, and streams of slow() inputs.
  bool progress = false;
};

namespace detail {

/// Throws errc::invalid_argument, with what was given, for a timeout or retry_delay below 0.
void require_valid(const task_options& options);

/// What the dispatcher is to know of a call that begins now.
[[nodiscard]] inline task_terms terms_of(const task_options& options) noexcept {
  task_terms terms{.timeout = options.timeout, .retry_on = options.retry_on, .retry_delay = options.retry_delay};
  if (options.deadline.count() != 0) {
    terms.since = clock::now();
    terms.deadline = later(terms.since, options.deadline);
  }
  return terms;
}

}  // namespace detail

// GCC 12 destroys other aggregates twice when they are temporaries inside a co_await expression.
static_assert(std::is_trivially_copyable_v<task_options>);

}  // namespace muster
