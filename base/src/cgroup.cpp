// SPDX-License-Identifier: BSL-1.0
#include <muster/base/cgroup.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace muster {

namespace {

namespace fs = std::filesystem;

struct membership {
  int version = 0;
  fs::path path;  // within the hierarchy
};

struct mount {
  fs::path root;   // which part of the hierarchy is mounted
  fs::path point;  // where
};

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(line);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

bool lists(const std::string& comma_separated, std::string_view word) {
  const auto words = split(comma_separated, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Lines of /proc/self/cgroup: "4:memory:/a/b" for version 1, "0::/a/b" for version 2. A controller that version 1
// has taken is not available to version 2.
membership find_membership(std::string_view controller, const fs::path& system_root) {
  std::ifstream in(system_root / "proc/self/cgroup");
  membership found;
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (lists(controllers, controller)) return {.version = 1, .path = line.substr(second + 1)};
    if (controllers.empty()) found = {.version = 2, .path = line.substr(second + 1)};
  }
  return found;
}

// Lines of /proc/self/mountinfo: "36 35 98:0 ROOT POINT options… - TYPE source super-options".
std::optional<mount> find_mount(int version, std::string_view controller, const fs::path& system_root) {
  std::ifstream in(system_root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const auto fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    const bool matches = version == 2 ? dash[1] == "cgroup2" : dash[1] == "cgroup" && lists(dash[3], controller);
    if (matches) return mount{.root = fields[3], .point = fields[4]};
  }
  return std::nullopt;
}

// The process's directory below the mount point. A container sees only part of the hierarchy: where the path does
// not lie below the mounted root, the mount point itself is the innermost directory there is.
fs::path below_mount(const membership& member, const mount& where) {
  const auto relative = member.path.lexically_relative(where.root);
  const bool outside = relative.empty() || *relative.begin() == "..";
  return outside || relative == "." ? fs::path() : relative;
}

}  // namespace

cgroup::cgroup(std::string_view controller, const fs::path& system_root) {
  const auto member = find_membership(controller, system_root);
  if (member.version == 0) return;
  const auto where = find_mount(member.version, controller, system_root);
  if (!where) return;
  version_ = member.version;
  const auto top = system_root / where->point.relative_path();
  auto inner = below_mount(member, *where);
  for (; !inner.empty(); inner = inner.parent_path()) directories_.push_back(top / inner);
  directories_.push_back(top);
}

std::optional<std::string> first_line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

}  // namespace muster
