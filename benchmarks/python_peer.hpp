// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include <muster/base/unique_fd.hpp>

namespace bench {

/// A Python interpreter with a multiprocessing.Pool that does what it is told, so many times: our turns and its turns
/// can alternate.
class python_peer {
public:
  /// `body`: a Python expression that does the thing `count` times with `pool`; `workers` of them.
  python_peer(const std::string& body, unsigned workers);
  python_peer(const python_peer&) = delete;
  python_peer& operator=(const python_peer&) = delete;
  ~python_peer();

  /// Whether there is an interpreter to be started.
  [[nodiscard]] static bool is_there();

  void run(std::size_t count);

private:
  muster::unique_fd requests_;
  muster::unique_fd answers_;
  pid_t process_ = 0;
};

}  // namespace bench
