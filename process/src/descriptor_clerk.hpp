// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <deque>
#include <map>
#include <memory>

#include <boost/asio/posix/stream_descriptor.hpp>

#include <muster/memory/descriptor_store.hpp>
#include <muster/memory/domain.hpp>

#include "channel.hpp"
#include "descriptor_messages.hpp"

namespace muster::detail {

/// Does in the host what a participant elsewhere asks of the exchange of descriptors, and answers. Nothing blocks: what
/// must wait for a deposit is answered later, and what the participant does not read is kept until it does.
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

private:
  struct answer_out {
    descriptor_answer text;
    descriptor_store::kept_fd descriptor;
  };
  struct pending_fetch {
    descriptor_name name;
    std::unique_ptr<descriptor_store::waiting> waiting;
  };

  void deposit(const descriptor_request& asked, message& heard);
  void fetch(const descriptor_request& asked);
  void look_again(request_number which);
  bool answer_fetch(request_number which, descriptor_name name);
  void answer(answer_out what);
  void send_answers();
  void send_later();
  [[nodiscard]] descriptor_name own(descriptor_name name) const;

  domain& shared_;
  descriptor_store& store_;
  stream& connection_;
  const participant_id peer_;
  std::map<request_number, pending_fetch> pending_;
  std::deque<answer_out> unsent_;
  bool sends_later_ = false;  // when the connection has room
};

}  // namespace muster::detail
