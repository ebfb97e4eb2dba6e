// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The control-group directories that limit this process for one controller, innermost first.
///
/// Understands version 1, version 2 and hybrid set-ups, where controllers live in different hierarchies, and
/// containers, where the mounted root is not the hierarchy's root.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.
class cgroup {
public:
  /// Looks at `system_root`/proc and at the mounted hierarchies; a test passes a made-up root.
  explicit cgroup(std::string_view controller, const std::filesystem::path& system_root = "/");

  /// 0 where the controller is not mounted, else 1 or 2.
  [[nodiscard]] int version() const noexcept { return version_; }
  [[nodiscard]] const std::vector<std::filesystem::path>& directories() const noexcept { return directories_; }

private:
  int version_ = 0;
  std::vector<std::filesystem::path> directories_;
};

/// The first line of a small file, or nothing when it cannot be read.
///
/// Thread safety: safe.
[[nodiscard]] std::optional<std::string> first_line_of(const std::filesystem::path& file);

}  // namespace muster
