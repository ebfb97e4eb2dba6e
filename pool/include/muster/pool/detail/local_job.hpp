// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

#include <muster/serialize/error_info.hpp>

namespace muster::detail {

struct local_worker;

/// Something that a thread of a pool does once.
///
/// Thread safety: distinct objects: safe.
class local_job {
public:
  local_job() = default;
  local_job(const local_job&) = delete;
  local_job& operator=(const local_job&) = delete;
  virtual ~local_job() = default;

  /// Does it, unless another thread has begun it.
  virtual void run(local_worker& here) noexcept = 0;
  /// Instead of run(): it ends with that error, unless a thread has begun it.
  virtual void withdraw(const error_info& why) noexcept = 0;

private:
  friend class local_queue;

  local_job* next_ = nullptr;
  std::shared_ptr<local_job> self_;  // while it is in a queue
};

}  // namespace muster::detail
