// SPDX-License-Identifier: BSL-1.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>

#include <muster/base/error.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/device/safetensors.hpp>

#include "bools.hpp"
#include "safetensors_header.hpp"

namespace muster {

namespace {

/// A file that is read from its beginning on.
///
/// Thread safety: belongs to its thread.
class read_file {
public:
  explicit read_file(const std::string& path)
      : path_(path),
        file_(
            system_call("open", ::open, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // of a pipe it would wait
    struct stat found{};
    system_call("fstat", ::fstat, file_.get(), &found);
    if (!S_ISREG(found.st_mode)) detail::refuse_file(path, "it is no regular file");
    left_ = static_cast<std::uint64_t>(found.st_size);
  }

  /// Bytes that have not been read.
  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }

  /// Requires: as many are left. Another process may have made it shorter meanwhile.
  void read(std::span<std::byte> room) {
    while (!room.empty()) {
      const auto got = try_system_call("read", ::read, file_.get(), static_cast<void*>(room.data()), room.size());
      if (got < 0) detail::throw_system_error_with(errno, "read", path_, room.size());
      if (got == 0) detail::refuse_file(path_, text("it ends ", room.size(), " bytes early"));
      room = room.subspan(static_cast<std::size_t>(got));
      left_ -= static_cast<std::uint64_t>(got);
    }
  }

private:
  const std::string& path_;
  unique_fd file_;
  std::uint64_t left_ = 0;
};

std::uint64_t read_length(read_file& file, const std::string& path) {
  std::array<std::byte, detail::safetensors_header::length_bytes> bytes{};
  if (file.left() < bytes.size())
    detail::refuse_file(path, text("it has ", file.left(), " bytes, and its length alone 8"));
  file.read(bytes);
  std::uint64_t length = 0;
  for (std::size_t byte = bytes.size(); byte-- > 0;)
    length = length << 8U | std::to_integer<std::uint64_t>(bytes[byte]);
  if (length <= std::min(file.left(), detail::safetensors_header::most_bytes)) return length;
  detail::refuse_file(path, text("its header would take ", length, " bytes, and ", file.left(), " are there"));
}

tensor read_tensor(read_file& file, const detail::safetensors_entry& what, memory where) {
  auto made = tensor::empty(what.type, what.shape, where);
  if (made.size() == 0) return made;
  const std::span<std::byte> room(made.data(), made.nbytes());
  file.read(room);
  if (what.type == dtype::boolean) detail::copy_bools(room.data(), room.data(), room.size());
  return made;
}

}  // namespace

safetensors read_safetensors(const std::string& path, memory where) {
  read_file file(path);
  std::string encoded(static_cast<std::size_t>(read_length(file, path)), '\0');
  file.read(std::as_writable_bytes(std::span(encoded)));
  auto header = detail::safetensors_header::decode(encoded, file.left(), path);
  safetensors made{.tensors = {}, .metadata = std::move(header.metadata)};
  for (auto& each : header.entries) made.tensors.emplace_back(std::move(each.name), read_tensor(file, each, where));
  return made;
}

}  // namespace muster
