// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

/// The name of the function that a world was called with last, for whoever reads what its ranks write.
///
/// Thread safety: safe.
class called_function {
public:
  void set(const std::string& name) MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    name_ = name;
  }
  [[nodiscard]] std::string name() const MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    return name_;
  }

private:
  mutable mutex mutex_;
  std::string name_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
