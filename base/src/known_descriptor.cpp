// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/known_descriptor.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <muster/base/system_call.hpp>

namespace muster {

// Not by way of checked calls: signal handlers come here. fstat and fcntl are not interrupted.
bool known_descriptor::read_inode(identity& found) const noexcept {
  struct stat file{};
  if (::fstat(descriptor_, &file) != 0) return false;
  found.device = file.st_dev;
  found.inode = file.st_ino;
  return true;
}

bool known_descriptor::read_owner(identity& found) const noexcept {
  f_owner_ex owner{};
  if (::fcntl(descriptor_, F_GETOWN_EX, &owner) != 0) return false;
  found.owner_type = static_cast<int>(owner.type);
  found.owner = owner.pid;
  return true;
}

known_descriptor::known_descriptor(int descriptor) noexcept : descriptor_(descriptor) {
  if (descriptor < 0) return;
  exists_ = read_owner(identity_) && (identity_.owner != 0 || read_inode(identity_));
}

bool known_descriptor::is_same() const noexcept {
  if (!exists_) return false;
  identity now;
  return (identity_.owner != 0 ? read_owner(now) : read_inode(now)) && now == identity_;
}

void known_descriptor::mark(int descriptor) {
  const f_owner_ex owner{.type = F_OWNER_PID, .pid = ::getpid()};
  const auto set = [&](int fd) { return ::fcntl(fd, F_SETOWN_EX, &owner); };
  system_call("fcntl F_SETOWN_EX", set, descriptor);
}

}  // namespace muster
