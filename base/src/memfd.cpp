// SPDX-License-Identifier: BSL-1.0
#include <muster/base/memfd.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>

#include <muster/base/memory_budget.hpp>
#include <muster/base/signals_blocked.hpp>
#include <muster/base/standard_streams.hpp>
#include <muster/base/system_call.hpp>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U  // glibc 2.36 does not know it; kernels before 6.3 answer EINVAL
#endif

namespace muster {

namespace {

void check_file_size_limit(const char* label, std::size_t bytes) {
  rlimit limit{};
  system_call("getrlimit", ::getrlimit, RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return;
  throw error(errc::out_of_memory,
              text("shared memory '", label, "' needs ", text_of_bytes(bytes), ", but RLIMIT_FSIZE allows ",
                   text_of_bytes(limit.rlim_cur), ": raise it (ulimit -f) or ask for less"));
}

unique_fd create(const char* label) {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int number = ::memfd_create(label, flags | MFD_NOEXEC_SEAL);
  if (number < 0 && errno == EINVAL) number = ::memfd_create(label, flags);
  if (number < 0) detail::throw_system_error_with(errno, "memfd_create", label, flags);
  return above_standard_streams(unique_fd(number));
}

// Without signals: any would have it undo what it has done so far, and begin again.
void populate(const unique_fd& file, const char* label, std::size_t bytes) {
  const signals_blocked scope;
  if (try_system_call("fallocate", ::fallocate, file.get(), 0, off_t{0}, static_cast<off_t>(bytes)) == 0) return;
  if (errno != ENOSPC && errno != ENOMEM) detail::throw_system_error_with(errno, "fallocate", file.get(), bytes);
  throw error(errc::out_of_memory,
              text("shared memory '", label, "' needs ", text_of_bytes(bytes),
                   ", which the kernel does not have: where it never overcommits (vm.overcommit_memory=2) what all "
                   "processes may use is bounded by CommitLimit in /proc/meminfo; ask for less, or raise "
                   "vm.overcommit_ratio"));
}

}  // namespace

memfd_pages pages_without_signals() { return never_overcommits() ? memfd_pages::at_once : memfd_pages::when_touched; }

unique_fd make_memfd(const char* label, std::size_t bytes, memfd_pages pages) {
  check_file_size_limit(label, bytes);
  auto file = create(label);
  system_call("ftruncate", ::ftruncate, file.get(), static_cast<off_t>(bytes));
  if (pages == memfd_pages::at_once) populate(file, label, bytes);
  const auto seal = [](int fd, int seals) { return ::fcntl(fd, F_ADD_SEALS, seals); };
  system_call("fcntl F_ADD_SEALS", seal, file.get(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return file;
}

}  // namespace muster
