// SPDX-License-Identifier: BSL-1.0
#include "leak_check.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <muster/base/sanitizer.hpp>
#include <muster/base/text.hpp>

#include "processes.hpp"

namespace muster::test {

namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  std::error_code failure;
  for (const auto& each : fs::directory_iterator(directory, failure)) names.insert(each.path().filename());
  return names;
}

// What stays the same of an open file while others rename or remove it; of what is no file, its name. By its link: the
// descriptor may just be closed.
std::string identity_of(const std::string& number, const fs::path& target) {
  struct stat found{};
  const auto link = "/proc/self/fd/" + number;
  if (!target.is_absolute() || ::stat(link.c_str(), &found) != 0) return text(number, ' ', target.native());
  return text(number, ' ', found.st_dev, ' ', found.st_ino);
}

std::map<std::string, std::string> open_descriptors() {
  std::map<std::string, std::string> found;
  for (const auto& number : names_in("/proc/self/fd")) {
    std::error_code failure;
    const auto target = fs::read_symlink("/proc/self/fd/" + number, failure);
    if (!failure && target != "/proc/" + std::to_string(::getpid()) + "/fd")
      found.emplace(identity_of(number, target), number + " -> " + target.string());
  }
  return found;
}

// "PID (name)" of children of this process that still run. A zombie whose parent was killed counts as gone.
std::set<std::string> running_children() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;  // orphans that a test killed the parent of
  std::set<std::string> found;
  for (const auto& name : names_in("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in("/proc/" + name + "/stat");
    std::string line;
    if (!std::getline(in, line)) continue;
    const auto end_of_name = line.rfind(')');
    std::istringstream rest(line.substr(end_of_name + 2));
    char state = 0;
    pid_t parent = 0;
    rest >> state >> parent;
    if (parent == ::getpid() && state != 'Z') found.insert(line.substr(0, end_of_name + 1));
  }
  return found;
}

std::string surplus(const std::set<std::string>& before, const std::set<std::string>& after) {
  std::string text;
  for (const auto& each : after) {
    if (!before.contains(each)) text += "  " + each + '\n';
  }
  return text;
}

std::string surplus(const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& after) {
  std::string text;
  for (const auto& [identity, shown] : after) {
    if (!before.contains(identity)) text += "  " + shown + '\n';
  }
  return text;
}

std::string surplus(const footprint& before, const footprint& after) {
  return surplus(before.descriptors, after.descriptors) + surplus(before.shared_memory, after.shared_memory) +
         surplus(before.children, after.children);
}

// A sanitizer that compares what it found with its list of suppressions starts a program of its own for that, which
// stays, and so do the pipes to it.
void forget_symbolizer(footprint& found) {
  const auto symbolizer =
      std::ranges::find_if(found.children, [](const std::string& each) { return each.ends_with("(llvm-symbolizer)"); });
  if (symbolizer == found.children.end()) return;
  const fs::path opened = "/proc/" + symbolizer->substr(0, symbolizer->find(' ')) + "/fd";
  for (const auto& number : names_in(opened)) {
    std::error_code failure;
    const auto pipe = fs::read_symlink(opened / number, failure).string();
    if (pipe.starts_with("pipe:")) {
      std::erase_if(found.descriptors, [&](const auto& each) { return each.second.ends_with("-> " + pipe); });
    }
  }
  found.children.erase(symbolizer);
}

// NVIDIA's driver keeps some open from its start on. The one of fake_cuda keeps none.
void forget_driver(footprint& found) {
  auto* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return;
  if (::dlsym(driver, "fake_cuda_live") == nullptr) {
    std::erase_if(found.descriptors, [](const auto& each) {
      const auto target = each.second.substr(each.second.find("-> ") + 3);
      const auto begins = [&target](const char* with) { return target.starts_with(with); };
      return begins("/dev/nvidia") || begins("anon_inode:") || begins("pipe:") || begins("socket:");
    });
  }
  ::dlclose(driver);
}

}  // namespace

footprint take_footprint() {
  footprint found{
      .descriptors = open_descriptors(), .shared_memory = names_in("/dev/shm"), .children = running_children()};
  if (is_sanitized) forget_symbolizer(found);
  forget_driver(found);
  return found;
}

void leak_check::OnTestStart(const testing::TestInfo& /*info*/) { before_ = take_footprint(); }

void leak_check::OnTestEnd(const testing::TestInfo& info) {
  // Some ends take a moment: of workers whose program has just ended, of zombies whose tracer has let go of them, and
  // of a pool that its own callback destroyed (the callback's future holds the last of the memory until it has
  // returned).
  std::string left;
  static_cast<void>(eventually([&] {
    left = surplus(before_, take_footprint());
    return left.empty();
  }));
  if (!left.empty()) ADD_FAILURE() << info.name() << " left behind:\n" << left;
}

}  // namespace muster::test
