// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <muster/device/safetensors.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/detail/store_access.hpp>
#include <muster/params/detail/store_file_entry.hpp>

namespace muster::detail {

/// A file of values, on its way from or to a store.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class store_file {
public:
  using entry = std::pair<store_file_entry, tensor>;

  store_file() = default;
  /// Throws as read_safetensors(), and errc::corrupted for what is no store's: also where a key is there twice, or is
  /// too long.
  explicit store_file(const std::string& path);

  [[nodiscard]] const std::vector<entry>& entries() const noexcept { return entries_; }
  /// Adds a value as it was found: a tensor as one, another as its bytes.
  void add(store_file_entry what, const found_version& found);
  /// Throws as write_safetensors().
  void write(const std::string& path) const;

private:
  std::vector<entry> entries_;
};

/// A new version of what a file has: at least that one. Throws errc::out_of_memory.
[[nodiscard]] new_version version_of_entry(const store_ptr& store, const store_file::entry& what);
/// Throws errc::out_of_memory where there is no room for those of the keys that the store has not yet: before one is
/// added, as none is ever given back.
void require_room_for(const store_ptr& store, const std::vector<store_key>& keys);

/// A value, as it was found.
///
/// Thread safety: as found_version.
struct stored_version {
  store_key key;
  found_version found;
};
/// All that a store has, as it was at one moment, in the order of keys. Throws errc::timed_out when others have pushed
/// all the time. Cost: looks at all keys, some times.
[[nodiscard]] std::vector<stored_version> find_everything(const store_ptr& store);

}  // namespace muster::detail
