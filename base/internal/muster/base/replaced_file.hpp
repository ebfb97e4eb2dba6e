// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <muster/base/unique_fd.hpp>

namespace muster::detail {

/// A file that takes another's place at once: readers find the old one, or the whole new one, whenever the writer, or
/// the machine, stops. It is written beside it, as PATH.PID.NUMBER.tmp; that stays where the writer is killed.
///
/// Thread safety: distinct objects: safe, also of one path: the last one stays. Shared objects: unsafe.
class replaced_file {
public:
  /// Throws what the system says, with the path.
  explicit replaced_file(std::string path);
  replaced_file(const replaced_file&) = delete;
  replaced_file& operator=(const replaced_file&) = delete;
  /// Removes what was written, unless it has been committed.
  ~replaced_file();

  void write(std::span<const std::byte> bytes);
  /// Returns when it is on the disk, in the other's place. Where the disk fails at the very end it throws, and is
  /// there.
  void commit();

private:
  std::string path_;
  std::string beside_;
  unique_fd directory_;
  unique_fd file_;
};

}  // namespace muster::detail
