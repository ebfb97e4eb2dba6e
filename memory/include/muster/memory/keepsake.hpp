// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <vector>

#include <muster/base/mutex.hpp>

namespace muster {

/// What the host of a domain keeps for others although the program has let go of it: the means to recover a structure
/// that workers may still use.
///
/// Thread safety: as the implementation; is_done() is called by one thread at a time.
class keepsake {
public:
  keepsake() = default;
  keepsake(const keepsake&) = delete;
  keepsake& operator=(const keepsake&) = delete;
  virtual ~keepsake() = default;

  /// Whether nobody else needs it, and nobody ever will. Must not touch the list.
  [[nodiscard]] virtual bool is_done() noexcept = 0;
};

/// The keepsakes of a domain. There is no event when the last worker lets go of something, so they are asked when the
/// program lets go of something, makes something new, or a participant has died.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: one list, in the host.
class keepsake_list {
public:
  void add(std::unique_ptr<keepsake> what) MUSTER_EXCLUDES(mutex_);
  /// Destroys those that are done, in the calling thread. Cost: each is asked.
  void tidy() noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size() const MUSTER_EXCLUDES(mutex_);

private:
  mutable mutex mutex_;
  std::vector<std::unique_ptr<keepsake>> kept_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
