// SPDX-License-Identifier: BSL-1.0
#include "program_command.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

namespace fs = std::filesystem;

constexpr const char* own_file = "/proc/self/exe";

/// Which files are mapped where in this process, as /proc says.
class mapped_files {
public:
  mapped_files() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) add(line);
  }
  /// Empty: none, or it is not known.
  [[nodiscard]] std::string at(std::uintptr_t address) const {
    for (const auto& each : all_) {
      if (each.begin <= address && address < each.end) return each.path;
    }
    return {};
  }

private:
  struct piece {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::string path;
  };

  // BEGIN-END RIGHTS OFFSET DEVICE INODE   PATH
  void add(const std::string& line) {
    const auto path = line.find('/');
    const auto dash = line.find('-');
    if (path == std::string::npos || dash > path) return;
    all_.push_back({.begin = std::stoull(line, nullptr, 16),
                    .end = std::stoull(line.substr(dash + 1), nullptr, 16),
                    .path = unescape(std::string_view(line).substr(path))});
  }
  static std::string unescape(std::string_view path) {
    constexpr std::string_view line_feed = "\\012";
    std::string found;
    while (!path.empty()) {
      const auto at = path.find(line_feed);
      found.append(path.substr(0, at));
      if (at == std::string_view::npos) break;
      found.push_back('\n');
      path.remove_prefix(at + line_feed.size());
    }
    return found;
  }

  std::vector<piece> all_;
};

std::string program_in(const mapped_files& files) { return files.at(::getauxval(AT_PHDR)); }

std::string executed_file() { return fs::read_symlink(own_file).string(); }

// Whether an object other than the program is loaded from that file: the loader is.
bool is_loaded(const mapped_files& files, const std::string& file) {
  std::vector<std::uintptr_t> objects;
  const auto add = [](dl_phdr_info* info, std::size_t, void* to) {
    static_cast<std::vector<std::uintptr_t>*>(to)->push_back(
        reinterpret_cast<std::uintptr_t>(info->dlpi_phdr));  // NOLINT: an address it is
    return 0;
  };
  ::dl_iterate_phdr(add, &objects);
  return std::any_of(objects.begin(), objects.end(), [&](auto each) { return files.at(each) == file; });
}

std::vector<std::string> read_command_line() {
  std::vector<std::string> words;
  std::ifstream line("/proc/self/cmdline");
  for (std::string word; std::getline(line, word, '\0');) words.push_back(word);
  return words;
}

// Those of the loader that are followed by a word of theirs.
bool has_value(std::string_view option) {
  constexpr std::array<std::string_view, 7> with_value = {
      "--library-path", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask", "--inhibit-rpath", "--audit", "--preload",
      "--argv0"};
  return std::find(with_value.begin(), with_value.end(), option) != with_value.end();
}

// A file without a slash is searched for; a folder is not.
std::string make_absolute(std::string_view option, const std::string& list) {
  const bool holds_folders = option == "--library-path";
  if (!holds_folders && option != "--preload" && option != "--audit") return list;
  std::string whole;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(':', begin), list.size());
    const auto each = list.substr(begin, end - begin);
    const bool stays = each.starts_with('$') || (!holds_folders && each.find('/') == std::string::npos);
    whole += text(begin == 0 ? "" : ":", stays ? each : fs::absolute(each.empty() ? "." : each).string());
    begin = end + 1;
  }
  return whole;
}

program_command find_command() {
  program_command found;
  if (::getauxval(AT_BASE) != 0) return found;  // the kernel has loaded the loader beside the program
  const mapped_files files;
  const auto program = program_in(files);
  const auto executed = executed_file();
  if (program.empty() || program == executed || !is_loaded(files, executed)) return found;
  return program_command::by_loader(read_command_line(), program);
}

// Both may be made up: valgrind answers readlink for the program, and stat as the kernel does.
bool is_executed(const std::string& program, const std::string& executed) {
  struct stat by_link{};
  struct stat by_path{};
  if (program != executed) return false;
  if (::stat(own_file, &by_link) != 0 || ::stat(program.c_str(), &by_path) != 0) return true;
  return by_link.st_dev == by_path.st_dev && by_link.st_ino == by_path.st_ino;
}

}  // namespace

program_command program_command::by_loader(const std::vector<std::string>& words, const std::string& program) {
  program_command made{.program = program};
  for (std::size_t index = 1; index < words.size() && words[index].starts_with("--"); ++index) {
    const auto& option = words[index];
    made.arguments.push_back(option);
    if (has_value(option) && index + 1 < words.size()) made.arguments.push_back(make_absolute(option, words[++index]));
  }
  made.arguments.push_back(program);
  return made;
}

const program_command& program_command::of_process() noexcept {
  static const program_command found = []() noexcept -> program_command {
    try {
      return find_command();
    } catch (const std::exception&) {  // without /proc nothing is known, and workers cannot be started
      return {};
    }
  }();
  return found;
}

std::string describe_foreign_start() {
  try {
    if (!program_command::of_process().arguments.empty()) return {};
    const auto program = program_in(mapped_files());
    const auto executed = executed_file();
    if (program.empty() || is_executed(program, executed)) return {};
    return text("/proc/self/exe, which workers execute, is ", program == executed ? "another file" : executed,
                ", and not this program (", program,
                "), as under valgrind, qemu-user and other programs that run programs: start this program by itself");
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace muster::detail
