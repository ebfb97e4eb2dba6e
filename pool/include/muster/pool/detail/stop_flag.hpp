// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>

#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

/// A request to stop within this process: a flag for who looks, and a std::stop_token for who wants to be told.
///
/// Thread safety: safe.
/// Cost: a flag, until somebody asks for a token.
class stop_flag {
public:
  stop_flag() noexcept;
  stop_flag(const stop_flag&) = delete;
  stop_flag& operator=(const stop_flag&) = delete;
  ~stop_flag();

  /// Calls what waits for it, by the tokens, in this thread.
  void request() noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_requested() const noexcept { return asked_.load(); }

  /// Also stopped when `outer` is.
  [[nodiscard]] std::stop_token token(const std::stop_token& outer = {}) MUSTER_EXCLUDES(mutex_);

private:
  struct tokens;

  [[nodiscard]] std::stop_source note() noexcept MUSTER_EXCLUDES(mutex_);

  std::atomic<bool> asked_ = false;
  mutex mutex_;
  std::unique_ptr<tokens> tokens_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
