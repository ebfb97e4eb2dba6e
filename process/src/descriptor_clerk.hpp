// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <muster/memory/detail/descriptor_store.hpp>
#include <muster/memory/domain.hpp>

#include "channel.hpp"
#include "descriptor_messages.hpp"

namespace muster::detail {

/// Does in the host what a participant elsewhere asks of the exchange of descriptors, and answers. Nothing blocks: what
/// must wait for a deposit is answered later, and what the participant does not read is kept until it does. So
/// everything goes by way of it that the host says to who takes part.
///
/// Thread safety: belongs to the supervisor's thread.
/// Lifetime: borrows domain and connection. With it all requests are forgotten.
class descriptor_clerk : public std::enable_shared_from_this<descriptor_clerk> {
public:
  using stream = boost::asio::posix::stream_descriptor;

  descriptor_clerk(domain& shared, stream& connection, participant_id peer);

  /// False if it is another's to hear.
  /// Throws errc::corrupted, errc::not_serializable for what no participant would say: the peer is to go.
  bool hear(message& heard);
  /// Says something else, behind the answers that are to be sent. It is lost with the peer, and not for want of room.
  void say(message_kind what, std::vector<std::byte> body = {});

private:
  struct message_out {
    message_kind kind{};
    std::vector<std::byte> body;
    descriptor_store::kept_fd descriptor;
    request_number number = 0;  // of an answer
  };
  struct pending_fetch {
    descriptor_name name;
    std::unique_ptr<descriptor_store::waiting> waiting;
  };

  void deposit(const descriptor_request& asked, message& heard);
  void fetch(const descriptor_request& asked);
  void look_again(request_number which);
  void forget(request_number which);
  bool answer_fetch(request_number which, descriptor_name name);
  void answer(const descriptor_answer& what, descriptor_store::kept_fd descriptor = {});
  void send(message_out what);
  void send_all();
  [[nodiscard]] bool send_first();
  [[nodiscard]] bool may_be_sent_otherwise(const error& failure);
  [[nodiscard]] bool refuse_instead(const error& failure);
  void send_when_there_is_room();
  void send_in_a_while();
  auto sending_on();
  [[nodiscard]] descriptor_name own(descriptor_name name) const;

  domain& shared_;
  descriptor_store& store_;
  stream& connection_;
  const participant_id peer_;
  std::map<request_number, pending_fetch> pending_;
  std::deque<message_out> unsent_;
  bool sends_later_ = false;  // when the connection has room, or the system
  boost::asio::steady_timer rest_timer_;
};

}  // namespace muster::detail
