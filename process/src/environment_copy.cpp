// SPDX-License-Identifier: BSL-1.0
#include "environment_copy.hpp"

#include <unistd.h>

#include <algorithm>

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

}  // namespace muster::detail
