// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>

#include <muster/base/unique_fd.hpp>

namespace bench {

/// What a process without a shared arena does to hand bytes to another without copying them: a memfd for each, sent
/// over a socket, mapped by both. The other process looks at every page and answers with a byte.
class fd_peer {
public:
  explicit fd_peer(std::size_t processor);
  fd_peer(const fd_peer&) = delete;
  fd_peer& operator=(const fd_peer&) = delete;
  ~fd_peer();

  /// Makes so many bytes, writes to every page, hands them over, and waits for the answer.
  void hand_over(std::size_t bytes);

private:
  [[noreturn]] void answer();

  std::array<muster::unique_fd, 2> ends_;
  pid_t child_ = 0;
};

/// Writes a byte to every page.
void touch(std::byte* first, std::size_t bytes);
/// Reads a byte of every page.
[[nodiscard]] unsigned look_at(const std::byte* first, std::size_t bytes);

}  // namespace bench
