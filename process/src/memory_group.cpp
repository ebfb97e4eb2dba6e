// SPDX-License-Identifier: BSL-1.0
#include "memory_group.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <fstream>
#include <locale>
#include <string_view>
#include <system_error>

#include <muster/base/error.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>
#include <muster/base/unique_fd.hpp>

namespace muster::detail {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "muster-";

bool find_version_2(const fs::path& inside) {
  std::error_code ignored;
  if (fs::exists(inside / "memory.limit_in_bytes", ignored)) return false;
  std::string all;
  std::getline(std::ifstream(inside / "cgroup.subtree_control"), all);
  if ((' ' + all + ' ').find(" memory ") != std::string::npos) return true;
  throw error(errc::invalid_argument,
              text("'", inside.string(), "' is no control group that can limit memory: expected is one of version 2 ",
                   "with 'memory' in its cgroup.subtree_control, or one of version 1's memory controller"));
}

// Kernels want all in one write.
void write(const fs::path& file, const std::string& value) {
  const auto open = [](const char* name) { return ::open(name, O_WRONLY | O_CLOEXEC); };
  const unique_fd descriptor(system_call("open", open, file.c_str()));
  const auto write_to = [&](const char* /*for the message*/, const char* what) {
    return ::write(descriptor.get(), what, value.size());
  };
  system_call("write", write_to, file.c_str(), value.c_str());
}

// Where the kernel has no such file, or does not want it, the group serves all the same.
void try_to_write(const fs::path& file, const std::string& value) noexcept {
  try {
    write(file, value);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // as said
  }
}

// Their names begin with the number of the process that made them.
void remove_leftovers(const fs::path& inside) noexcept {
  std::error_code failure;
  for (fs::directory_iterator each(inside, failure), end; !failure && each != end; each.increment(failure)) {
    const auto name = each->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t maker = 0;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), maker);
    if (maker > 0 && ::kill(maker, 0) == -1 && errno == ESRCH) ::rmdir(each->path().c_str());
  }
}

fs::path make_directory(const fs::path& inside) {
  remove_leftovers(inside);
  for (unsigned number = 1;; ++number) {
    auto directory = inside / text(prefix, ::getpid(), '-', number);
    if (std::error_code unknown; fs::exists(directory, unknown)) continue;
    try {
      system_call("mkdir", ::mkdir, directory.c_str(), mode_t{0755});
      return directory;
    } catch (const error& failure) {
      if (failure.code() != std::errc::file_exists) throw;  // another thread was first
    }
  }
}

}  // namespace

memory_group::memory_group(const fs::path& inside, std::uint64_t most_bytes)
    : most_bytes_(most_bytes), is_version_2_(find_version_2(inside)), directory_(make_directory(inside)) {
  try {
    write(directory_ / (is_version_2_ ? "memory.max" : "memory.limit_in_bytes"), text(most_bytes));
  } catch (const error&) {
    ::rmdir(directory_.c_str());
    throw;
  }
  try_to_write(directory_ / "memory.swap.max", "0");
  try_to_write(directory_ / "memory.oom.group", "1");  // who has lost a child of his is of no use
}

memory_group::~memory_group() { static_cast<void>(try_to_remove()); }

// Once it is removed its name may be another's.
bool memory_group::try_to_remove() noexcept {
  if (!removed_) removed_ = ::rmdir(directory_.c_str()) == 0 || errno == ENOENT;
  if (removed_) return true;
  if (is_version_2_) try_to_write(directory_ / "cgroup.kill", "1");
  removed_ = ::rmdir(directory_.c_str()) == 0;
  return removed_;
}

void memory_group::enter(pid_t who) const { write(directory_ / "cgroup.procs", text(who)); }

std::string memory_group::describe_kill() const {
  std::ifstream in(directory_ / (is_version_2_ ? "memory.events" : "memory.oom_control"));
  in.imbue(std::locale::classic());
  std::string name;
  std::uint64_t value = 0;
  while (in >> name >> value) {
    if (name != "oom_kill" || value == 0) continue;
    return text("killed by the kernel: it and its children had more memory than the ", most_bytes_,
                " bytes that their control group may have\n");
  }
  return {};
}

}  // namespace muster::detail
