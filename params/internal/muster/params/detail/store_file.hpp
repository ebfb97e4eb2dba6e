// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <muster/device/safetensors.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/detail/store_access.hpp>
#include <muster/params/detail/store_file_entry.hpp>

namespace muster {

class store;

namespace detail {

/// A file of values, on its way from or to a store.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class store_file {
public:
  using entry = std::pair<store_file_entry, tensor>;

  store_file() = default;
  /// Throws as read_safetensors(), and errc::corrupted for what is no store's.
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

/// Keys that a program has in a store, sorted.
[[nodiscard]] std::vector<store_key> keys_of_program(const store& of);
/// `list()` as it is now, and the values of these keys at one moment: where one of them is erased meanwhile, both
/// again. Throws errc::timed_out.
[[nodiscard]] std::pair<std::vector<store_key>, std::vector<found_version>> find_all_listed(
    const store_ptr& store, const std::function<std::vector<store_key>()>& list);

}  // namespace detail
}  // namespace muster
