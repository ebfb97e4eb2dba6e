// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/idle_processor.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

#include <muster/base/unique_fd.hpp>

namespace muster {

namespace {

// The fourth field is "running/all", and counts the calling thread; 0 where there is none.
long running_threads() noexcept {
  const unique_fd file(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const auto length = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (length <= 0) return 0;
  std::string_view left(text.data(), static_cast<std::size_t>(length));
  left = left.substr(0, left.find('/'));
  long found = 0;
  const auto* const first = left.data() + left.find_last_of(' ') + 1;
  std::from_chars(first, left.data() + left.size(), found);
  return found;
}

}  // namespace

bool seems_processor_idle(long own) noexcept { return running_threads() - own < ::sysconf(_SC_NPROCESSORS_ONLN) - 1; }

}  // namespace muster
