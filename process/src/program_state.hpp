// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <optional>
#include <vector>

#include <muster/base/unique_fd.hpp>

namespace muster::detail {

/// Limits and mask of a process, as they are sent to a worker.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct process_limits {
  std::optional<std::uint32_t> umask{};
  std::vector<std::uint64_t> soft{};  ///< by resource (RLIMIT_…)

  /// Those of this process, now.
  [[nodiscard]] static process_limits now();
  /// Makes them those of this process, as far as its hard limits let it.
  void apply() const noexcept;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(umask, soft);
  }
};

/// What workers take from the program as it was once, so that one which is started later, by another thread, is as its
/// siblings: the directory, limits, and which signals are the program's.
///
/// Thread safety: a value; shared objects: safe while nobody assigns.
class program_state {
public:
  /// As it is now. `left`: signals that are the program's whatever it does with them.
  explicit program_state(const std::vector<int>& left);

  /// Where workers begin; -1 where the program is: it is there, may not search there, or has closed the descriptor.
  [[nodiscard]] int directory() const noexcept;
  [[nodiscard]] const process_limits& limits() const noexcept { return limits_; }
  /// The signals that end no worker: those that are left, those that were blocked in the thread that has made this, as
  /// for sigwait, and those that the program handles or ignores by now.
  [[nodiscard]] std::vector<int> left_signals() const;

private:
  unique_fd directory_;
  dev_t device_ = 0;  // of the directory, as the next: the program may close descriptors that it has not opened
  ino_t inode_ = 0;
  process_limits limits_;
  sigset_t left_{};
};

/// Throws errc::invalid_argument for a signal that workers cannot be told to ignore.
void require_may_be_ignored(const std::vector<int>& signals);

/// Has this process do nothing at a signal. What it executes has it as usual.
void do_nothing_at(int signal) noexcept;
/// Has this process, a worker, do nothing at these signals, and unblocks them: they are the program's. What it executes
/// has them as usual. Those that it handles stay as they are.
void do_nothing_at(const std::vector<int>& signals) noexcept;

}  // namespace muster::detail
