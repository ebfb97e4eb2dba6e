// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/device/device.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/store.hpp>
#include <muster/params/store_key.hpp>

namespace muster::detail {

/// Values of a store of one process that lie on GPUs, with what the rule remembers of them: the newest ones are here,
/// and in the store when they have been written back. A value, or a state, that is pushed or loaded there replaces what
/// is here.
///
/// Thread safety: safe.
class kv_placed {
public:
  struct parts {
    tensor value{};
    std::vector<tensor> states{};
    std::uint64_t serial = 0;  ///< which ones they are
  };
  enum class outcome : std::uint8_t {
    replaced,
    value_has_changed,  ///< those that they were made of are not the newest any more
    not_noted
  };

  explicit kv_placed(const store& all) : all_(all) {}

  /// From now on the value lies there.
  void place(const store_key& key, device where) MUSTER_EXCLUDES(mutex_);
  /// Returns where it lies; on the host, if that has not been said.
  [[nodiscard]] device where(const store_key& key) const MUSTER_EXCLUDES(mutex_);
  /// Returns the newest ones; nothing, where there is no such value, or it lies on the host.
  [[nodiscard]] std::optional<parts> find(const store_key& key) MUSTER_EXCLUDES(mutex_);
  /// Makes what was made of the newest ones, with their serial, the newest, if `note` returns true.
  [[nodiscard]] outcome replace(const store_key& key, parts next, const std::function<bool()>& note)
      MUSTER_EXCLUDES(mutex_);
  /// Returns newest values, as they were at one moment, wherever they lie. Throws as store::pull_all.
  [[nodiscard]] std::vector<tensor> pull_all(const std::vector<store_key>& keys) MUSTER_EXCLUDES(mutex_);
  /// Has the store have all of them; none is replaced while `then` runs. Throws errc::timed_out where others push the
  /// values all the time.
  void write_back(const std::function<void()>& then = [] {}) MUSTER_EXCLUDES(mutex_);

private:
  struct entry {
    device where{};
    parts newest{};
    std::uint64_t base = 0;  // version of the value in the store that is here, or that it has come from
    std::vector<std::uint64_t> state_bases{};  // likewise; 0: there is none
    bool is_ahead = false;                     // of the store
  };

  [[nodiscard]] std::vector<std::uint64_t> state_versions(const store_key& key) const;
  [[nodiscard]] bool refresh(const store_key& key, entry& of) const MUSTER_REQUIRES(mutex_);
  void refresh_states(const store_key& key, entry& of) const MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::optional<std::vector<tensor>> try_pull_all(const std::vector<store_key>& keys)
      MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool write_back_one(const store_key& key, entry& of) const MUSTER_REQUIRES(mutex_);

  const store all_;
  mutable mutex mutex_;
  std::map<store_key, entry> entries_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
