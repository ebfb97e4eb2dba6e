// SPDX-License-Identifier: BSL-1.0
// A program that has more rights than who started it is nobody's worker, whatever environment and descriptors say, and
// makes no pool. It starts, as another user, a copy of itself that is root's (set-user-ID), and one whose file has a
// capability.
#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include <muster/pool/pool.hpp>

#include "channel.hpp"
#include "check.hpp"
#include "spawn.hpp"

namespace {

constexpr int skipped = 77;
constexpr uid_t nobody = 65534;

int run_with_more_rights() {
  if (::getauxval(AT_SECURE) == 0) return skipped;  // the file system, or a sandbox, gives no rights
  expect_error(muster::errc::not_initialized, {"set-user-ID", "capabilities"},
               [] { const muster::pool pool({.workers = 1}); });
  return EXIT_SUCCESS;
}

// What a worker finds: the mark, and the greeting at the agreed place.
void forge_greeting() {
  static auto channel = muster::detail::make_channel();
  const std::string mark = "forged";
  muster::detail::send_message(channel.first.get(), muster::detail::message_kind::greeting,
                               std::as_bytes(std::span(mark)));
  ::setenv(muster::detail::worker_variable, mark.c_str(), 1);
  check(::dup2(channel.second.get(), muster::detail::control_descriptor) >= 0, "dup2");
}

int run_as_nobody(const std::filesystem::path& program) {
  const auto child = ::fork();
  if (child == 0) {
    if (::setresuid(nobody, nobody, nobody) != 0) std::_Exit(EXIT_FAILURE);
    forge_greeting();
    ::execl(program.c_str(), program.c_str(), "with", "more rights", nullptr);
    std::_Exit(EXIT_FAILURE);
  }
  int status = 0;
  check(::waitpid(child, &status, 0) == child && WIFEXITED(status), "the copy has ended by itself");
  return WEXITSTATUS(status);
}

// False where that cannot be: the file system has no such attributes, or nobody here has the capability.
bool give_capability(const std::filesystem::path& program) {
  constexpr auto given = std::uint32_t{CAP_NET_BIND_SERVICE};
  if (::prctl(PR_CAPBSET_READ, given) != 1) return false;
  vfs_cap_data rights{};
  rights.magic_etc = std::uint32_t{VFS_CAP_REVISION_2} | std::uint32_t{VFS_CAP_FLAGS_EFFECTIVE};
  rights.data[0].permitted = 1U << given;
  return ::setxattr(program.c_str(), "security.capability", &rights, sizeof rights, 0) == 0;
}

int run_copy_with_user_id(const std::filesystem::path& program) {
  check(::chmod(program.c_str(), S_ISUID | 0755) == 0, "chmod");
  return run_as_nobody(program);
}

int run_copy_with_capability(const std::filesystem::path& program) {
  check(::chmod(program.c_str(), 0755) == 0, "chmod");
  return give_capability(program) ? run_as_nobody(program) : skipped;
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  if (argc > 2) return run_with_more_rights();
  if (::geteuid() != 0) return skipped;  // only root can become another user
  std::string folder = (std::filesystem::temp_directory_path() / "muster-rights-XXXXXX").string();
  check(::mkdtemp(folder.data()) != nullptr && ::chmod(folder.c_str(), 0755) == 0, "a folder for the copy");
  const auto program = std::filesystem::path(folder) / "program";
  std::filesystem::copy_file("/proc/self/exe", program);
  const std::string kind = argc == 2 ? argv[1] : "";
  const int found = kind == "capability" ? run_copy_with_capability(program) : run_copy_with_user_id(program);
  std::filesystem::remove_all(folder);
  return found;
}
