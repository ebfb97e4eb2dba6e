// SPDX-License-Identifier: BSL-1.0
#include <muster/base/descriptor_limit.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace muster {

namespace {

rlim_t count_open() noexcept {
  std::error_code failure;
  std::filesystem::directory_iterator each("/proc/self/fd", failure);
  rlim_t found = 0;
  for (; !failure && each != std::filesystem::directory_iterator(); each.increment(failure)) ++found;
  return found;
}

}  // namespace

void make_room_for_descriptors(std::size_t more) noexcept {
  rlimit limit{};
  const rlim_t needed = count_open() + more;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));  // what cannot be opened says so
}

}  // namespace muster
