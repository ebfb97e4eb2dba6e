// SPDX-License-Identifier: BSL-1.0
#include "descriptor_clerk.hpp"

#include <array>
#include <chrono>
#include <span>
#include <system_error>
#include <utility>

#include <boost/asio/post.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

using standing = descriptor_store::finding::standing;

// Each is a thread of the peer that waits.
constexpr std::size_t most_pending = 1024;
// Then it asks and asks, and does not listen.
constexpr std::size_t most_unsent = most_pending;

descriptor_answer failed(request_number which, const error& failure) {
  const bool is_ours = failure.code().category() == error_category();
  return {
      .number = which,
      .failure = static_cast<std::uint32_t>(is_ours ? failure.code().value() : static_cast<int>(errc::out_of_memory)),
      .why = failure.what()};
}

}  // namespace

descriptor_clerk::descriptor_clerk(domain& shared, stream& connection, participant_id peer)
    : shared_(shared),
      store_(shared.deposits()),
      connection_(connection),
      peer_(peer),
      rest_timer_(connection.get_executor()) {}

bool descriptor_clerk::hear(message& heard) {
  if (unsent_.size() >= most_unsent) {
    throw error(errc::corrupted, text("participant ", index_of(peer_), " does not read what it has asked for"));
  }
  const auto asked = [&] { return heard.read<descriptor_request>(); };
  switch (heard.kind) {
    case message_kind::deposit: deposit(asked(), heard); return true;
    case message_kind::fetch: fetch(asked()); return true;
    case message_kind::forget: forget(asked().number); return true;
    case message_kind::withdraw: store_.withdraw(own(descriptor_name(asked().name))); return true;
    case message_kind::let_go: store_.let_go(descriptor_name(asked().name)); return true;
    default: return false;
  }
}

descriptor_name descriptor_clerk::own(descriptor_name name) const {
  if (name.depositor() == peer_) return name;
  throw error(errc::corrupted, text("participant ", index_of(peer_), " deposits or withdraws what is participant ",
                                    index_of(name.depositor()), "'s"));
}

// The asker holds the anchor until it is answered; one that is dead may not, which keep() notices.
void descriptor_clerk::deposit(const descriptor_request& asked, message& heard) {
  const auto name = own(descriptor_name(asked.name));
  try {
    if (heard.descriptors.empty()) {
      throw error(errc::out_of_memory,
                  "the descriptor did not arrive, for the host has no free ones: raise "
                  "RLIMIT_NOFILE (ulimit -n) of the program");
    }
    shared_block anchor;
    if (asked.anchor != 0) {
      anchor = shared_.blocks().borrow(asked.anchor);
      shared_.blocks().keep(anchor);
    }
    store_.deposit(name, std::move(heard.descriptors.front()), anchor);
    answer({.number = asked.number, .why = {}});
  } catch (const error& failure) {
    answer(failed(asked.number, failure));
  }
}

// Registered before it is looked up: nothing that happens in between is missed.
void descriptor_clerk::fetch(const descriptor_request& asked) {
  const descriptor_name name(asked.name);
  if (answer_fetch(asked.number, name)) return;
  if (pending_.size() >= most_pending) {
    const error failure(errc::out_of_memory,
                        text(most_pending, " threads of this process are waiting for descriptors already"));
    return answer(failed(asked.number, failure));
  }
  auto settled = [weak = weak_from_this(), which = asked.number, on = connection_.get_executor()] {
    boost::asio::post(on, [weak, which] {
      if (const auto self = weak.lock()) self->look_again(which);
    });
  };
  auto& made = pending_[asked.number];
  made = {.name = name, .waiting = std::make_unique<descriptor_store::waiting>(store_, name, std::move(settled))};
  look_again(asked.number);
}

void descriptor_clerk::look_again(request_number which) {
  const auto found = pending_.find(which);
  if (found != pending_.end() && answer_fetch(which, found->second.name)) pending_.erase(found);
}

// Who has asked waits for a last word, unless it was said and is on its way.
void descriptor_clerk::forget(request_number which) {
  const auto found = pending_.find(which);
  if (found == pending_.end()) return;
  const auto name = found->second.name;
  pending_.erase(found);
  if (answer_fetch(which, name)) return;
  const error late(errc::timed_out, text("descriptor ", name.number(), " of participant ", index_of(name.depositor()),
                                         " was not deposited in time"));
  answer(failed(which, late));
}

bool descriptor_clerk::answer_fetch(request_number which, descriptor_name name) {
  auto found = store_.look_up(name);
  if (found.what == standing::awaited) return false;
  answer({.number = which, .has_descriptor = found.what == standing::there, .why = {}}, std::move(found.descriptor));
  return true;
}

// ---- sending

void descriptor_clerk::say(message_kind what, std::vector<std::byte> body) {
  send({.kind = what, .body = std::move(body), .descriptor = {}});
}

void descriptor_clerk::answer(const descriptor_answer& what, descriptor_store::kept_fd descriptor) {
  send({.kind = message_kind::answer,
        .body = body_of(what),
        .descriptor = std::move(descriptor),
        .number = what.number});
}

void descriptor_clerk::send(message_out what) {
  unsent_.push_back(std::move(what));
  send_all();
}

void descriptor_clerk::send_all() {
  while (!unsent_.empty() && !sends_later_) {
    try {
      if (!send_first()) return send_when_there_is_room();
    } catch (const error& failure) {
      if (may_be_sent_otherwise(failure)) continue;
    }
    unsent_.pop_front();
  }
}

bool descriptor_clerk::send_first() {
  const auto& next = unsent_.front();
  const std::array descriptors = {next.descriptor ? next.descriptor->get() : -1};
  return try_send_message(connection_.native_handle(), next.kind, next.body,
                          std::span(descriptors).first(next.descriptor ? 1 : 0));
}

// Of descriptors too many are on their way at the moment, perhaps: that is the asker's error. Memory there will be
// again, and who waits for a word would wait for ever. Else the peer is gone, or cannot be told this at all.
bool descriptor_clerk::may_be_sent_otherwise(const error& failure) {
  auto& next = unsent_.front();
  if (std::exchange(next.descriptor, nullptr)) {
    next.body = body_of(failed(next.number, failure));
    return true;
  }
  if (failure.code() == std::errc::message_size) return refuse_instead(failure);
  if (failure.code() != std::errc::no_buffer_space && failure.code() != std::errc::not_enough_memory) return false;
  send_in_a_while();
  return true;
}

// Where net.core.wmem_default was made small. Who has asked hears why, and goes on.
bool descriptor_clerk::refuse_instead(const error& failure) {
  message_out shorter{.kind = message_kind::refusal,
                      .body = body_of(error_info(errc::out_of_memory, failure.what())),
                      .descriptor = {}};
  if (shorter.body.size() >= unsent_.front().body.size()) return false;
  unsent_.front() = std::move(shorter);
  return true;
}

auto descriptor_clerk::sending_on() {
  sends_later_ = true;
  return [weak = weak_from_this()](boost::system::error_code cancelled) {
    const auto self = weak.lock();
    if (cancelled || !self) return;
    self->sends_later_ = false;
    self->send_all();
  };
}

void descriptor_clerk::send_when_there_is_room() { connection_.async_wait(stream::wait_write, sending_on()); }

void descriptor_clerk::send_in_a_while() {
  rest_timer_.expires_after(std::chrono::milliseconds(10));
  rest_timer_.async_wait(sending_on());
}

}  // namespace muster::detail
