// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <muster/base/requirements.hpp>

namespace muster {

/// A file descriptor, and the open file that it meant when this was made.
///
/// User code may close descriptors of the library, all of them with closefrom(3), and open files of its own, which get
/// the same numbers. The library writes to a descriptor that user code could have closed only after `is_same()`.
///
/// Files, sockets and pipes are recognized by their inode. All eventfds have one inode: `mark()` makes them
/// recognizable.
///
/// Thread safety: distinct objects: safe. Shared objects: safe while nobody assigns.
/// Lifetime: borrows the descriptor.
/// Cost: `is_same` makes one system call, about 100 ns. Signal handlers may call it.
class known_descriptor {
public:
  known_descriptor() noexcept = default;  ///< no descriptor: never the same
  explicit known_descriptor(int descriptor) noexcept;

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  /// Whether the descriptor still means the open file that it meant.
  [[nodiscard]] bool is_same() const noexcept;

  /// Makes an open file without an inode of its own recognizable, in all processes that it is sent to: its owner
  /// (fcntl F_SETOWN) becomes this process. Nothing is ever signalled to the owner.
  /// Throws muster::error.
  static void mark(int descriptor);

private:
  struct identity {
    dev_t device = 0;
    ino_t inode = 0;
    int owner_type = 0;
    pid_t owner = 0;  // 0: the inode identifies it

    friend bool operator==(const identity&, const identity&) noexcept = default;
  };
  [[nodiscard]] bool read_inode(identity& found) const noexcept;
  [[nodiscard]] bool read_owner(identity& found) const noexcept;

  int descriptor_ = -1;
  bool exists_ = false;
  identity identity_;
};

}  // namespace muster
