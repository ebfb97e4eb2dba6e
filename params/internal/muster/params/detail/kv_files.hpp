// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/params/detail/kv_values.hpp>
#include <muster/params/detail/store_file.hpp>
#include <muster/params/store.hpp>

namespace muster::detail {

/// Files of a key-value store: its values, what its rule remembers of each, and how often that has been applied.
///
/// Thread safety: safe.
class kv_files {
public:
  /// Which member is to own a value of so many bytes that has no owner yet.
  using choose_owner = std::function<kv_ownership(std::size_t bytes)>;

  kv_files(const store& all, choose_owner choose) : all_(all), choose_(std::move(choose)) {}

  /// Returns all that there is, as it is at one moment.
  [[nodiscard]] std::vector<stored_version> find() const;
  /// Writes that into a file, as kv_store::save.
  static void write(const std::vector<stored_version>& all, const std::string& path);
  /// As kv_store::load.
  void load(const std::string& path, deadline until) const;

private:
  /// What belongs to one value of a file, and which member is to own it where it has no owner.
  struct part {
    const store_file::entry* value = nullptr;
    std::vector<const store_file::entry*> states{};  // in their order
    kv_ownership owner{};
  };
  class draft;

  [[nodiscard]] std::vector<part> parts_of(const store_file& file, const std::string& path) const;

  const store all_;
  const choose_owner choose_;
};

}  // namespace muster::detail
