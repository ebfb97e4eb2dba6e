// SPDX-License-Identifier: BSL-1.0
// A program that has more rights than who started it is nobody's worker, whatever environment and descriptors say, and
// makes no pool. It starts a copy of itself that is root's, as another user.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
  if (::geteuid() == nobody) return skipped;  // the file system, or a sandbox, gives no rights
  expect_error(muster::errc::not_initialized, {"set-user-ID"}, [] { const muster::pool pool({.workers = 1}); });
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
    ::execl(program.c_str(), program.c_str(), "with more rights", nullptr);
    std::_Exit(EXIT_FAILURE);
  }
  int status = 0;
  check(::waitpid(child, &status, 0) == child && WIFEXITED(status), "the copy has ended by itself");
  return WEXITSTATUS(status);
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  if (argc > 1) return run_with_more_rights();
  if (::geteuid() != 0) return skipped;  // only root can become another user
  std::string folder = (std::filesystem::temp_directory_path() / "muster-rights-XXXXXX").string();
  check(::mkdtemp(folder.data()) != nullptr && ::chmod(folder.c_str(), 0755) == 0, "a folder for the copy");
  const auto program = std::filesystem::path(folder) / "program";
  std::filesystem::copy_file("/proc/self/exe", program);
  check(::chmod(program.c_str(), S_ISUID | 0755) == 0, "chmod");
  const int found = run_as_nobody(program);
  std::filesystem::remove_all(folder);
  return found;
}
