// SPDX-License-Identifier: BSL-1.0
#include <muster/base/replaced_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

std::string name_beside(const std::string& path) {
  static std::atomic<std::uint64_t> count{0};
  return text(path, '.', ::getpid(), '.', count.fetch_add(1, std::memory_order_relaxed), ".tmp");
}

constexpr mode_t mode_of_files = 0666;  // what the program's umask leaves of it

std::string directory_of(const std::string& path) {
  const auto end = path.rfind('/');
  if (end == std::string::npos) return ".";
  return end == 0 ? "/" : path.substr(0, end);
}

unique_fd open_directory(const std::string& name) {
  return unique_fd(system_call("open", ::open, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace

// Another process may have had the same name in a namespace of its own.
replaced_file::replaced_file(std::string path)
    : path_(std::move(path)), directory_(open_directory(directory_of(path_))) {
  constexpr int most_tries = 100;
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  for (int tried = 0;; ++tried) {
    beside_ = name_beside(path_);
    const int opened = try_system_call("open", ::open, beside_.c_str(), flags, mode_of_files);
    if (opened >= 0) {
      file_ = unique_fd(opened);
      return;
    }
    if (errno != EEXIST || tried == most_tries) throw_system_error_with(errno, "open", beside_);
  }
}

replaced_file::~replaced_file() {
  if (file_) ::unlink(beside_.c_str());
}

void replaced_file::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written =
        try_system_call("write", ::write, file_.get(), static_cast<const void*>(bytes.data()), bytes.size());
    if (written < 0) throw_system_error_with(errno, "write", beside_, bytes.size());
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void replaced_file::commit() {
  system_call("fsync", ::fsync, file_.get());
  system_call("rename", ::rename, beside_.c_str(), path_.c_str());
  file_.reset();
  system_call("fsync", ::fsync, directory_.get());  // else the rename may be lost
}

}  // namespace muster::detail
