// SPDX-License-Identifier: BSL-1.0
#include "ledger.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fake_cuda {

namespace {

namespace fs = std::filesystem;

std::string directory() {
  const auto* const named = std::getenv("FAKE_CUDA_SHARED");
  return named != nullptr ? named : "";
}

int open_file(const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); }

// Held while the directory is read or written, if there is one.
class directory_lock {
public:
  explicit directory_lock(const std::string& directory) {
    if (directory.empty()) return;
    file_ = open_file(directory + "/lock");
    ::flock(file_, LOCK_EX);
  }
  directory_lock(const directory_lock&) = delete;
  directory_lock& operator=(const directory_lock&) = delete;
  ~directory_lock() {
    if (file_ >= 0) ::close(file_);
  }

private:
  int file_ = -1;
};

bool is_held_by_somebody(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = ::flock(file, LOCK_EX | LOCK_NB) != 0;
  ::close(file);
  return locked;
}

}  // namespace

ledger::ledger() : directory_(directory()) {}

std::string ledger::own_path() const { return directory_ + "/held-by-" + std::to_string(::getpid()); }

bool ledger::add(ino_t inode, int physical, std::size_t bytes, std::size_t limit) {
  const std::scoped_lock lock(mutex_);
  const directory_lock of_all(directory_);
  auto& found = held_[inode];
  if (found.count == 0) {
    found = {physical, bytes, 1};
    if (used_now(physical) > limit) {
      held_.erase(inode);
      return false;
    }
  } else {
    ++found.count;
  }
  write_own();
  return true;
}

void ledger::remove(ino_t inode) {
  const std::scoped_lock lock(mutex_);
  const directory_lock of_all(directory_);
  const auto found = held_.find(inode);
  if (found == held_.end() || --found->second.count > 0) return;
  held_.erase(found);
  write_own();
}

std::size_t ledger::used(int physical) {
  const std::scoped_lock lock(mutex_);
  const directory_lock of_all(directory_);
  return used_now(physical);
}

std::size_t ledger::used_now(int physical) const {
  auto all = held_;
  add_others(all);
  std::size_t sum = 0;
  for (const auto& [inode, each] : all) sum += each.physical == physical ? each.bytes : 0;
  return sum;
}

void ledger::add_others(entries& found) const {
  if (directory_.empty()) return;
  for (const auto& file : fs::directory_iterator(directory_)) {
    if (!file.path().filename().string().starts_with("held-by-") || file.path() == own_path()) continue;
    if (!is_held_by_somebody(file.path())) {
      std::error_code ignored;
      fs::remove(file.path(), ignored);
      continue;
    }
    std::ifstream in(file.path());
    ino_t inode = 0;
    for (entry each; in >> inode >> each.physical >> each.bytes;) found.insert_or_assign(inode, each);
  }
}

void ledger::write_own() {
  if (directory_.empty()) return;
  if (held_.empty()) {
    ::unlink(own_path().c_str());
    ::close(own_);
    own_ = -1;
    return;
  }
  if (own_ < 0) {
    own_ = open_file(own_path());
    ::flock(own_, LOCK_EX);
  }
  std::ostringstream out;
  for (const auto& [inode, each] : held_) out << inode << ' ' << each.physical << ' ' << each.bytes << '\n';
  const auto text = std::move(out).str();
  static_cast<void>(!::ftruncate(own_, 0));
  static_cast<void>(::pwrite(own_, text.data(), text.size(), 0) < 0);
}

}  // namespace fake_cuda
