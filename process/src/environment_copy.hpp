// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::detail {

/// The environment of this process as it was once, for workers that are started later by another thread: `setenv` in
/// the program must not meet a reader of `environ` there.
///
/// Thread safety: to make one, nobody changes the environment meanwhile, as everywhere. Then a value; shared objects:
/// safe while nobody assigns.
class environment_copy {
public:
  environment_copy();

  /// `NAME=value` each, except that of worker_variable.
  [[nodiscard]] const std::vector<std::string>& entries() const noexcept { return entries_; }
  [[nodiscard]] bool has(std::string_view name) const;
  /// The same entries, with `others`, `NAME=value` too, in the place of those with their names.
  [[nodiscard]] std::vector<std::string> with(std::span<const std::string> others) const;

private:
  std::vector<std::string> entries_;
};

}  // namespace muster::detail
