// SPDX-License-Identifier: BSL-1.0
#include "environment_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "spawn.hpp"

namespace muster::detail {

namespace {

bool names(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
}

}  // namespace

environment_copy::environment_copy() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {  // null after clearenv()
    if (!names(*entry, worker_variable)) entries_.emplace_back(*entry);
  }
}

bool environment_copy::has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& each) { return names(each, name); });
}

std::vector<std::string> environment_copy::with(std::span<const std::string> others) const {
  const auto is_replaced = [&](std::string_view entry) {
    const auto has_its_name = [&](std::string_view other) { return names(entry, other.substr(0, other.find('='))); };
    return std::any_of(others.begin(), others.end(), has_its_name);
  };
  std::vector<std::string> all(others.begin(), others.end());
  std::remove_copy_if(entries_.begin(), entries_.end(), std::back_inserter(all), is_replaced);
  return all;
}

}  // namespace muster::detail
