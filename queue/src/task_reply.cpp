// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/task_reply.hpp>

#include <algorithm>
#include <cstring>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/reply_block.hpp>

namespace muster {

task_reply::task_reply(std::span<const std::byte> bytes, bool failed) noexcept
    : size_(static_cast<std::uint8_t>(std::min(bytes.size(), inline_reply_bytes))), failed_(failed) {
  std::memcpy(line_.data(), bytes.data(), size_);
}

task_reply::task_reply(error_info error) noexcept : failed_(true) { keep(std::move(error)); }

task_reply::task_reply(error_info error, std::span<const std::byte> line) noexcept : task_reply(line, true) {
  keep(std::move(error));
}

void task_reply::keep(error_info error) noexcept {
  try {
    rest().error = std::move(error);
  } catch (const std::bad_alloc&) {
    code_ = error.code();
  }
}

void task_reply::set_place(task_place place) noexcept {
  try {
    rest().place = std::move(place);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the error is told without
  }
}

task_reply task_reply::adopt(arena& memory, block_ref sent, bool failed) {
  const auto what = reply_block::of(sent);
  sent.size_bytes = what.total_bytes();
  return {memory, memory.adopt(sent), what, failed};
}

task_reply::task_reply(arena& memory, block payload, reply_block what, bool failed)
    : task_reply(std::move(payload), failed) {
  const auto name_of = [names = payload_.data() + what.names_offset()](std::size_t index) {
    std::uint64_t name = 0;
    std::memcpy(&name, names + index * sizeof name, sizeof name);
    return name;
  };
  try {
    if (what.attachments != 0) rest().shared.reserve(what.attachments);
  } catch (const std::bad_alloc&) {
    // The worker has made a hold for each of them: they are received all the same, and dropped.
    for (std::size_t index = 0; index < what.attachments; ++index) static_cast<void>(memory.receive(name_of(index)));
    throw;
  }
  for (std::size_t index = 0; index < what.attachments; ++index)
    rest().shared.push_back(memory.receive(name_of(index)));
  payload_.shrink(what.frame_bytes);
}

shared_block reply_attachments::take(std::uint64_t name) {
  if (name < blocks_.size()) return blocks_[name];
  throw error(errc::corrupted, text("a reply names its block ", name, ", but ", blocks_.size(), " came with it"));
}

task_reply::details& task_reply::rest() {
  if (rest_ == nullptr) rest_ = std::make_unique<details>();
  return *rest_;
}

void task_reply::adopt_attached(arena& memory) {
  if (size_ != inline_reply_bytes) return;
  std::array<std::uint64_t, attached_blocks> handles{};
  std::memcpy(handles.data(), line_.data() + attached_handles_offset, sizeof handles);
  for (std::size_t index = 0; index < attached_blocks; ++index) {
    if (handles[index] == 0) continue;
    try {
      rest().attached[index] = memory.adopt(block_ref::of_handle(handles[index]));
    } catch (const muster::error&) {  // NOLINT(bugprone-empty-catch): no block, no attachment
      // A line that its chunk had not got to clear; or a worker that misbehaves, which the reader of the block notices.
    }
  }
}

error_info read_error(std::span<const std::byte> bytes) {
  try {
    error_info found;
    input_archive in(bytes);
    in(found);
    return found;
  } catch (const std::exception& failure) {
    return {errc::corrupted, std::string("the worker's error record cannot be read: ") + failure.what()};
  }
}

error_info task_reply::error() const {
  auto found = rest_ != nullptr && rest_->error ? *rest_->error
               : code_ != errc()                ? error_info(code_, {})
                                                : read_error(bytes());
  if (rest_ != nullptr && rest_->place) found.set_place(*rest_->place);
  return found;
}

}  // namespace muster
