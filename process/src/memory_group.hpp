// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::detail {

/// A control group with a limit on memory for one process and what it starts, inside of one that somebody has given to
/// this program: of version 2, with the memory controller enabled for what is inside, or of version 1's memory
/// controller. It is removed in the end, by an undertaker if somebody still dies there; those that a killed program has
/// left behind are empty, and whoever makes the next one in the same place removes them. (Programs that share a place
/// share a PID namespace, or one could take what the other is about to use for left behind.)
///
/// Thread safety: distinct objects: safe. Shared objects: safe, except try_to_remove and the destructor.
class memory_group {
public:
  /// Throws errc::invalid_argument when `inside` is no such group, and muster::error when it may not be written to.
  memory_group(const std::filesystem::path& inside, std::uint64_t most_bytes);
  memory_group(const memory_group&) = delete;
  memory_group& operator=(const memory_group&) = delete;
  /// As try_to_remove.
  ~memory_group();

  /// Kills who is still there, where the kernel knows how to (version 2). False when somebody still dies: once more
  /// later.
  [[nodiscard]] bool try_to_remove() noexcept;

  /// Throws muster::error.
  void enter(pid_t who) const;
  /// In words, when the kernel has killed somebody in it for want of memory; else nothing.
  [[nodiscard]] std::string describe_kill() const;

private:
  const std::uint64_t most_bytes_;
  const bool is_version_2_;
  const std::filesystem::path directory_;
  bool removed_ = false;
};

}  // namespace muster::detail
