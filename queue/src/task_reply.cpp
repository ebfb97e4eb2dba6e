// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/task_reply.hpp>

#include <algorithm>
#include <cstring>

namespace muster {

task_reply::task_reply(std::span<const std::byte> bytes, bool failed) noexcept
    : size_(static_cast<std::uint8_t>(std::min(bytes.size(), inline_reply_bytes))), failed_(failed) {
  std::memcpy(line_.data(), bytes.data(), size_);
}

task_reply::task_reply(error_info error, std::span<const std::byte> line) : task_reply(line, true) {
  error_ = std::make_unique<error_info>(std::move(error));
}

error_info task_reply::error() const {
  error_info found;
  if (error_ != nullptr) {
    found = *error_;
  } else {
    try {
      input_archive in(bytes());
      in(found);
    } catch (const std::exception& failure) {
      found = error_info(errc::corrupted, std::string("the worker's error record cannot be read: ") + failure.what());
    }
  }
  if (place_ != nullptr) found.set_place(*place_);
  return found;
}

}  // namespace muster
