// SPDX-License-Identifier: BSL-1.0
#include "memory_group.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include <muster/base/cgroup.hpp>

namespace muster::test {

namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) throw std::runtime_error("cannot write " + text + " to " + file.string());
}

bool is_delegated(const std::filesystem::path& group) {
  std::ofstream(group / "cgroup.subtree_control") << "+memory" << std::flush;
  std::string enabled;
  std::getline(std::ifstream(group / "cgroup.subtree_control"), enabled);
  return enabled.find("memory") != std::string::npos;
}

}  // namespace

memory_group::memory_group() {
  const cgroup own("memory");
  version_ = own.version();
  if (version_ == 0 || own.directories().empty()) {
    why_not_ = "there is no memory controller here";
    return;
  }
  const auto wanted = own.directories().front() / ("muster_test_" + std::to_string(::getpid()));
  if (::mkdir(wanted.c_str(), 0755) != 0) {
    why_not_ = "this program may not make control groups";
    return;
  }
  path_ = wanted;
  if (version_ == 2 && !is_delegated(path_)) why_not_ = "the memory controller is not delegated";
}

memory_group::~memory_group() {
  if (path_.empty()) return;
  EXPECT_EQ(::rmdir(path_.c_str()), 0) << "the groups in it are gone";
}

limited_memory::limited_memory(const memory_group& inside, std::size_t bytes)
    : path_(inside.path() / "limited"), version_(inside.version()) {
  if (::mkdir(path_.c_str(), 0755) != 0) throw std::runtime_error("cannot make " + path_.string());
  write(path_ / (version_ == 1 ? "memory.limit_in_bytes" : "memory.max"), std::to_string(bytes));
  const auto swapping = path_ / (version_ == 1 ? "memory.swappiness" : "memory.swap.max");
  if (std::filesystem::exists(swapping)) write(swapping, "0");
}

limited_memory::~limited_memory() { EXPECT_EQ(::rmdir(path_.c_str()), 0) << "its processes have ended"; }

void limited_memory::enter() const { write(path_ / "cgroup.procs", std::to_string(::getpid())); }

std::uint64_t limited_memory::kills() const {
  std::ifstream in(path_ / (version_ == 1 ? "memory.oom_control" : "memory.events"));
  std::string name;
  for (std::uint64_t count = 0; in >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

}  // namespace muster::test
