// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include <muster/serialize/error_code.hpp>

#include "table_lock.hpp"

namespace muster {

/// The category of codes that came from a process with a category that this one does not know. It has that category's
/// name, and the texts of the codes that have come.
///
/// Thread safety: safe.
class stand_in_category final : public std::error_category {
public:
  /// A process that sends nonsense cannot fill this one's memory: later texts are not kept.
  static constexpr std::size_t max_texts = 256;
  static constexpr std::size_t max_text_bytes = 1024;

  stand_in_category(object_token token, std::string name) : token_(token), name_(std::move(name)) {}

  [[nodiscard]] const char* name() const noexcept override { return name_.c_str(); }
  [[nodiscard]] std::string message(int value) const override MUSTER_EXCLUDES(detail::table_mutex);
  /// Of the original.
  [[nodiscard]] object_token token() const noexcept { return token_; }

  void keep_text(int value, const std::string& text) MUSTER_EXCLUDES(detail::table_mutex);

private:
  const object_token token_;
  const std::string name_;
  std::map<int, std::string> texts_ MUSTER_GUARDED_BY(detail::table_mutex);
};

/// All stand-ins of this process. They are never destroyed, because codes refer to them.
///
/// Thread safety: safe.
class stand_in_categories {
public:
  /// Beyond, one stand-in serves for all.
  static constexpr std::size_t max_count = 256;
  static constexpr std::size_t max_name_bytes = 256;

  [[nodiscard]] static stand_in_categories& of_this_process();

  /// Returns the stand-in for a category: the same one for the same token and name.
  [[nodiscard]] stand_in_category& get(object_token token, const std::string& name)
      MUSTER_EXCLUDES(detail::table_mutex);

private:
  stand_in_category nameless_{object_token::none, "an unknown category"};
  std::map<std::pair<object_token, std::string>, stand_in_category> known_ MUSTER_GUARDED_BY(detail::table_mutex);
};

}  // namespace muster
