// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include <muster/base/detail/mutex.hpp>

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
  /// `subject`: the address of what it is kept for, by which tidy_some() finds it; nullptr: of nothing.
  void add(std::unique_ptr<keepsake> what, const void* subject = nullptr) MUSTER_EXCLUDES(mutex_);
  /// Destroys those that are done, in the calling thread. Cost: each is asked.
  void tidy() noexcept MUSTER_EXCLUDES(mutex_);
  /// Asks that of the subject and a few others in turn, and destroys those that are done, in the calling thread: for
  /// making or letting go of one of many. Cost: logarithmic.
  void tidy_some(const void* subject = nullptr) noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size() const MUSTER_EXCLUDES(mutex_);

private:
  using kept = std::multimap<const void*, std::unique_ptr<keepsake>>;

  [[nodiscard]] std::unique_ptr<keepsake> take_of(const void* subject) noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::unique_ptr<keepsake> take_next(std::size_t& questions) noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::unique_ptr<keepsake> take_if_done(kept::iterator which) noexcept MUSTER_REQUIRES(mutex_);

  mutable mutex mutex_;
  kept kept_ MUSTER_GUARDED_BY(mutex_);
  kept::iterator next_ MUSTER_GUARDED_BY(mutex_) = kept_.end();  // to be asked; end(): the first
};

}  // namespace muster
