// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/shared_block.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/rpc/detail/serial_line.hpp>
#include <muster/rpc/detail/served_counts.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

/// A value that this member owns, for references.
///
/// Thread safety: the line: safe. The rest: belongs to the thread that runs in the line, but for concurrent calls,
/// which read what was written before the value was made.
struct stored_value {
  std::uint64_t id = 0;
  shared_block cell;                    ///< that references hold
  std::shared_ptr<void> value;          ///< null until it is made
  std::optional<error_info> failure{};  ///< why it could not be
  std::atomic<int> names = 0;           ///< that it is published under: it stays without references
  std::atomic<bool> is_made = false;    ///< written after the value
  serial_line line{};
};
using value_ptr = std::shared_ptr<stored_value>;

/// A service that this member offers.
///
/// Thread safety: safe.
struct offered_service {
  std::uint64_t id = 0;
  std::string name;
  std::uint64_t type = 0;
  service_function run;
  std::shared_ptr<serial_line> line;  ///< null: at once
  service_counts counts{};
};
using offered_ptr = std::shared_ptr<offered_service>;

/// What a member owns, by number: values, services.
///
/// Thread safety: safe.
template <class Object>
class object_store {
public:
  using object_ptr = std::shared_ptr<Object>;

  void add(object_ptr what) MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    const auto id = what->id;
    objects_.insert_or_assign(id, std::move(what));
  }
  [[nodiscard]] object_ptr find(std::uint64_t id) const MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    const auto found = objects_.find(id);
    return found != objects_.end() ? found->second : nullptr;
  }
  /// Returns it, or nothing.
  object_ptr remove(std::uint64_t id) MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    auto found = objects_.extract(id);
    return found ? std::move(found.mapped()) : nullptr;
  }
  [[nodiscard]] std::vector<object_ptr> all() const MUSTER_EXCLUDES(mutex_) {
    const scoped_lock lock(mutex_);
    std::vector<object_ptr> found;
    found.reserve(objects_.size());
    for (const auto& [id, object] : objects_) found.push_back(object);
    return found;
  }
  [[nodiscard]] std::vector<object_ptr> take_all() MUSTER_EXCLUDES(mutex_) {
    std::map<std::uint64_t, object_ptr> taken;
    {
      const scoped_lock lock(mutex_);
      taken.swap(objects_);
    }
    std::vector<object_ptr> found;
    for (auto& [id, object] : taken) found.push_back(std::move(object));
    return found;
  }

private:
  mutable mutex mutex_;
  std::map<std::uint64_t, object_ptr> objects_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
