// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/incoming_message.hpp>

#include <exception>
#include <new>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "message_holds.hpp"

namespace muster {

namespace {

// Inside of a catch block. Of shared memory or descriptors, which others give back.
bool is_want_of_shared_memory() noexcept {
  try {
    throw;
  } catch (const error& failure) {
    return failure.code() == errc::out_of_memory;
  } catch (...) {
    return false;
  }
}

// Inside of a catch block.
bool is_want_of_memory() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return is_want_of_shared_memory();
  }
}

[[noreturn]] void throw_incomplete() {
  throw error(errc::corrupted,
              "a block that came with a message is not there any more: somebody has overwritten the message, or the "
              "domain's tables");
}

}  // namespace

incoming_message::~incoming_message() {
  if (keeping_ == message_keeping::when_decoded)
    put_back();
  else
    discard();
}

// False where it is out already, and in a forked child, whose parent has it.
bool incoming_message::let_go() noexcept { return std::exchange(claimed_, false) && ring_.is_here(); }

shared_block incoming_message::borrow(std::uint64_t name) {
  auto made = ring_.memory().borrow_sent(name);
  if (keeping_ == message_keeping::when_decoded) ring_.memory().keep(made);
  return made;
}

// What is wanting here is of ours, whatever T's serialize function makes of the exception.
template <class Get>
auto incoming_message::obtain(Get get) {
  try {
    return get();
  } catch (...) {
    is_wanting_ = is_want_of_memory();
    throw;
  }
}

std::span<const std::byte> incoming_message::open() {
  const auto room = ring_.room_at(at_);
  if (form_.in_block) block_ = obtain([&] { return ring_.memory().borrow_sent(read_name(room.data())); });
  const auto found = form_.in_block ? std::span<const std::byte>(block_.bytes()) : room;
  if (form_.body_bytes() > found.size()) {
    throw error(errc::corrupted, text("a message says that it has ", form_.body_bytes(), " bytes, but there are only ",
                                      found.size(), ": somebody has overwritten it"));
  }
  body_ = found.first(form_.body_bytes());
  return body_.first(form_.frame_bytes);
}

shared_block incoming_message::take(std::uint64_t index) {
  if (index >= form_.attachments) {
    throw error(errc::corrupted, text("a message refers to block ", index, " of ", form_.attachments,
                                      " that came with it: somebody has overwritten it"));
  }
  return obtain([&] {
    if (lent_.empty()) lent_.resize(form_.attachments);
    auto& mine = lent_[index];
    if (!mine) mine = borrow(read_name(body_.data() + form_.names_offset(), index));
    return mine;
  });
}

// Into the handles that were decoded. Also those that nobody asked for are kept until the cell is free: they belong to
// the message if this process dies before.
bool incoming_message::receive(std::size_t index) noexcept {
  try {
    const auto name = read_name(body_.data() + form_.names_offset(), index);
    if (lent_[index]) {
      ring_.memory().receive_for(lent_[index], name);
    } else {
      lent_[index] = ring_.memory().receive(name);
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// The body's block is the last, since the names of the others lie in it. Should this process die on the way, the host
// gives back what it has received so far, and the message is there again.
bool incoming_message::receive_all() noexcept {
  bool all = true;
  try {
    if (!body_.empty()) lent_.resize(form_.attachments);
    for (std::size_t index = 0; index < lent_.size(); ++index) all = receive(index) && all;
    if (!block_) return all;
    ring_.memory().receive_for(block_, read_name(ring_.room_at(at_).data()));
    return all;
  } catch (const std::exception&) {
    return false;
  }
}

void incoming_message::accept() {
  const bool all = receive_all();
  claimed_ = false;
  ring_.free_cell(at_);
  lent_.clear();
  block_.reset();
  if (!all) throw_incomplete();
}

// The frame is copied before the cell is free, and what cannot be had is known then.
taken_message incoming_message::take_out() {
  taken_message taken;
  const auto frame = open();
  if (!form_.in_block) taken.copy(frame);
  taken.size_ = frame.size();
  const bool all = receive_all();
  claimed_ = false;
  ring_.free_cell(at_);
  taken.block_ = std::move(block_);
  taken.attachments_ = std::move(lent_);
  if (!all) throw_incomplete();
  return taken;
}

// Nothing in here can fail: a message that could not be put back would be in nobody's reach, its cell taken, and the
// end of a closed queue would not come to the others, for as long as this process lives.
void incoming_message::put_back() noexcept {
  if (!let_go()) return;
  lent_.clear();
  block_.reset();
  ring_.put_back(at_);
}

// A bad_alloc of T's own is no such want: it may always want so much, and nobody could ever take the message out.
void incoming_message::give_up() noexcept {
  if (keeping_ == message_keeping::when_decoded && (is_wanting_ || is_want_of_shared_memory()))
    put_back();
  else
    discard();
}

void incoming_message::discard() noexcept {
  if (!let_go()) return;
  static_cast<void>(receive_all());
  ring_.free_cell(at_);
  lent_.clear();
  block_.reset();
}

}  // namespace muster
