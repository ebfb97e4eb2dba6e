// SPDX-License-Identifier: BSL-1.0
#include "stand_in_category.hpp"

#include <algorithm>
#include <tuple>

#include <muster/base/text.hpp>

namespace muster {

std::string stand_in_category::message(int value) const {
  const detail::table_lock lock;
  const auto found = texts_.find(value);
  return found != texts_.end() ? found->second : text("code ", value, " of category '", name_, "'");
}

void stand_in_category::keep_text(int value, const std::string& text) {
  if (text.empty()) return;
  const detail::table_lock lock;
  if (texts_.size() < max_texts) texts_.try_emplace(value, text.substr(0, max_text_bytes));
}

stand_in_categories& stand_in_categories::of_this_process() {
  static auto& instance = *new stand_in_categories;  // static objects may hold codes, and are destroyed in any order
  return instance;
}

stand_in_category& stand_in_categories::get(object_token token, const std::string& name) {
  const detail::table_lock lock;
  std::pair key(token, name.substr(0, std::min(name.find('\0'), max_name_bytes)));  // name() is a C string
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  if (known_.size() == max_count) return nameless_;
  const auto made =
      known_.emplace(std::piecewise_construct, std::forward_as_tuple(key), std::forward_as_tuple(token, key.second));
  return made.first->second;
}

}  // namespace muster
