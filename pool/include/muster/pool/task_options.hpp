// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace muster {

/// A short name for a task or map, shown in its errors. Longer names are cut.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class task_label {
public:
  static constexpr std::size_t most_bytes = 47;

  constexpr task_label() noexcept = default;
  constexpr task_label(const char* name) noexcept
      : task_label(std::string_view(name)) {}           // NOLINT: reads like a string
  constexpr task_label(std::string_view name) noexcept  // NOLINT: as above
      : size_(static_cast<unsigned char>(std::min(name.size(), most_bytes))) {
    std::copy_n(name.begin(), size_, bytes_.begin());
  }

  [[nodiscard]] constexpr std::string_view view() const noexcept { return {bytes_.data(), size_}; }

private:
  std::array<char, most_bytes> bytes_{};
  unsigned char size_ = 0;
};

/// How one call is to be treated: `pool.with({.retries = 2}).map(f, xs)`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct task_options {
  /// How often a task (of a map: an element) is run again after the worker that ran it died. 0, the default, because
  /// only you know whether running it twice does harm.
  unsigned retries = 0;
  /// How long the task (of a map: each element) may run. Longer, and its worker is killed and replaced, and the task
  /// ends with errc::timed_out, whatever its retries; nothing else is lost: a worker that is about to be killed has no
  /// other task. Waiting for a worker does not count. 0: as long as it likes.
  std::chrono::nanoseconds timeout{};
  /// map and imap: elements per chunk; 0: by time, growing until a chunk takes about a millisecond.
  std::size_t chunk = 0;
  /// imap: how many elements may be taken from the input ahead of what has been consumed; 0: four chunks a worker.
  std::size_t window = 0;
  task_label label{};
};

// GCC 12 destroys other aggregates twice when they are temporaries inside a co_await expression.
static_assert(std::is_trivially_copyable_v<task_options>);

}  // namespace muster
