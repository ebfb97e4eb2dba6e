// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <map>
#include <span>

#include <muster/base/detail/mutex.hpp>
#include <muster/cuda/driver.hpp>

namespace muster::detail {

/// Pages that were registered with the driver, and by how many they are wanted: the driver takes them once.
///
/// Thread safety: safe.
class pin_table {
public:
  /// Registers them, unless they are. Requires: a context is current; ranges are the same or do not overlap. Throws
  /// what the driver says.
  void add(const cuda_driver& driver, std::span<std::byte> pages) MUSTER_EXCLUDES(mutex_);
  /// Requires: added before, and a context is current. What fails, fails because the context, or the driver, is gone.
  void remove(const cuda_driver& driver, std::span<std::byte> pages) noexcept MUSTER_EXCLUDES(mutex_);
  /// Whether the pages from there on are registered. Whoever wants them may let them go meanwhile.
  [[nodiscard]] bool has(const std::byte* first) const MUSTER_EXCLUDES(mutex_);

private:
  mutable mutex mutex_;
  std::map<const std::byte*, std::size_t> counts_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
