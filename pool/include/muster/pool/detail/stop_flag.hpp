// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>

#include <muster/base/mutex.hpp>

namespace muster::detail {

/// A request to stop within this process: a flag for who looks, and a std::stop_token for who wants to be told.
///
/// Thread safety: safe.
/// Cost: a flag, until somebody asks for a token.
class stop_flag {
public:
  void request() noexcept MUSTER_EXCLUDES(mutex_) {
    auto told = note();
    told.request_stop();  // calls the user's callbacks: not under the lock
  }
  [[nodiscard]] bool is_requested() const noexcept { return asked_.load(); }

  /// Also stopped when `outer` is.
  [[nodiscard]] std::stop_token token(const std::stop_token& outer = {}) MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    if (tokens_ == nullptr) {
      tokens_ = std::make_unique<tokens>(outer);
      if (is_requested()) tokens_->source.request_stop();  // nobody has a callback yet
    }
    return tokens_->source.get_token();
  }

private:
  [[nodiscard]] std::stop_source note() noexcept MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    asked_.store(true);
    return tokens_ != nullptr ? tokens_->source : std::stop_source(std::nostopstate);
  }

  struct tokens {
    struct pass_on {
      std::stop_source to;
      void operator()() noexcept { to.request_stop(); }
    };
    explicit tokens(const std::stop_token& outer) : link(outer, pass_on{source}) {}

    std::stop_source source;
    std::stop_callback<pass_on> link;
  };

  std::atomic<bool> asked_ = false;
  mutex mutex_;
  std::unique_ptr<tokens> tokens_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
