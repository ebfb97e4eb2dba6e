// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/taken_message.hpp>

#include <cstring>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

taken_message::taken_message(taken_message&& other) noexcept { *this = std::move(other); }

taken_message& taken_message::operator=(taken_message&& other) noexcept {
  if (this == &other) return *this;
  size_ = std::exchange(other.size_, 0);
  large_ = std::move(other.large_);
  block_ = std::move(other.block_);
  attachments_ = std::move(other.attachments_);
  if (large_ == nullptr && !block_) std::memcpy(small_.data(), other.small_.data(), size_);
  return *this;
}

void taken_message::copy(std::span<const std::byte> frame) {
  if (frame.size() > small_.size()) large_.reset(new std::byte[frame.size()]);  // not zeroed
  std::memcpy(large_ != nullptr ? large_.get() : small_.data(), frame.data(), frame.size());
}

std::span<const std::byte> taken_message::frame() const noexcept {
  if (block_) return std::span<const std::byte>(block_.bytes()).first(size_);
  return {large_ != nullptr ? large_.get() : small_.data(), size_};
}

shared_block taken_message::take(std::uint64_t index) {
  if (index < attachments_.size() && attachments_[index]) return attachments_[index];
  throw error(errc::corrupted, text("a message refers to block ", index, " of ", attachments_.size(),
                                    " that came with it: somebody has overwritten it"));
}

std::size_t taken_message::attached_bytes() const noexcept {
  std::size_t all = 0;
  for (const auto& each : attachments_) all += each.size();
  return all;
}

void taken_message::reset() noexcept {
  size_ = 0;
  large_.reset();
  block_.reset();
  attachments_.clear();
}

}  // namespace muster
