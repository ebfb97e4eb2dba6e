// SPDX-License-Identifier: BSL-1.0
#pragma once

// How much of each GPU's memory is used.

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace fake_cuda {

/// Counts what this process holds; where FAKE_CUDA_SHARED names a directory, what all processes hold that it is named
/// to, each memory once. A process writes what it holds into a file there, which it locks: whoever died has no lock.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class ledger {
public:
  ledger();

  /// Adds memory of that inode if `used + bytes` is at most `limit`; says whether it is.
  bool add(ino_t inode, int physical, std::size_t bytes, std::size_t limit);
  void remove(ino_t inode);
  [[nodiscard]] std::size_t used(int physical);

private:
  struct entry {
    int physical = 0;
    std::size_t bytes = 0;
    int count = 0;  // imported more than once, or by its maker
  };
  using entries = std::map<ino_t, entry>;

  [[nodiscard]] std::size_t used_now(int physical) const;
  void add_others(entries& found) const;
  void write_own();
  [[nodiscard]] std::string own_path() const;

  const std::string directory_;
  std::mutex mutex_;
  int own_ = -1;  // this process's file, while it holds something
  entries held_;
};

}  // namespace fake_cuda
