// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/outgoing_message.hpp>

#include <cstring>
#include <exception>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/domain.hpp>

namespace muster {

outgoing_message::~outgoing_message() {
  for (const auto name : holds_) {
    try {
      ring_.memory().receive(name).reset();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it is gone already
    }
  }
}

std::span<std::byte> outgoing_message::make_room(std::size_t frame_bytes, std::size_t attachments) {
  if (attachments > message_form::most_attachments || frame_bytes > message_form::most_frame_bytes) {
    throw error(errc::not_serializable, text("a message of ", frame_bytes, " bytes with ", attachments,
                                             " shared blocks; at most ", message_form::most_frame_bytes, " bytes and ",
                                             message_form::most_attachments, " blocks go into one: send several"));
  }
  form_ = {.frame_bytes = frame_bytes, .attachments = attachments};
  const auto needed = form_.body_bytes();
  form_.in_block = needed > ring_.inline_bytes();
  holds_.reserve(attachments + 1);
  if (form_.in_block) {
    block_ = ring_.memory().allocate_shared(needed);
    body_ = block_.bytes();
  } else if (needed <= small_.size()) {
    body_ = std::span(small_).first(needed);
  } else {
    large_.reset(new std::byte[needed]);  // not zeroed
    body_ = {large_.get(), needed};
  }
  return body_.first(frame_bytes);
}

std::uint64_t outgoing_message::attach(const shared_block& what) {
  const auto index = holds_.size();
  if (index == form_.attachments) throw error(errc::not_serializable, "a value attached more blocks than it counted");
  const auto name = ring_.memory().send(what);
  holds_.push_back(name);
  std::memcpy(body_.data() + form_.names_offset() + index * sizeof name, &name, sizeof name);
  return index;
}

void outgoing_message::finish() {
  if (holds_.size() < form_.attachments) {
    throw error(errc::not_serializable,
                text("a value attached ", holds_.size(), " blocks after it had counted ", form_.attachments));
  }
  if (!form_.in_block) return;
  const auto name = ring_.memory().hand_over(std::move(block_));
  holds_.push_back(name);
  std::memcpy(small_.data(), &name, sizeof name);
  body_ = std::span(small_).first(sizeof name);
}

message_view outgoing_message::view() const noexcept { return {.form = form_, .bytes = body_, .holds = holds_}; }

queue_result outgoing_message::settle(queue_result found) noexcept {
  if (found == queue_result::done) holds_.clear();  // they are the queue's
  return found;
}

queue_result outgoing_message::try_push() { return settle(ring_.try_push(view())); }
queue_result outgoing_message::push(deadline until) { return settle(ring_.push(view(), until)); }
queue_result outgoing_message::push(deadline until, bool (*is_over)(void* of), void* of) {
  return settle(ring_.push(view(), until, is_over, of));
}

}  // namespace muster
