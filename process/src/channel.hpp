// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/process/worker_environment.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/modules.hpp>
#include <muster/serialize/error_info.hpp>

#include "program_state.hpp"

namespace muster::detail {

/// The version of the messages below and of the layouts that they lead to.
inline constexpr std::uint32_t protocol_version = 5;

/// What parent and worker say to each other over the control socket, in this order.
enum class message_kind : std::uint32_t {
  greeting,  ///< parent, before the worker runs: proves that the socket is what it seems
  hello,     ///< worker
  welcome,   ///< parent, with descriptors; or …
  refusal,   ///< … parent: the reason
  ready,     ///< worker: takes tasks
  failure,   ///< worker: an error_info; it exits then
  closed,    ///< never sent: what receive_message returns when the peer is gone
  // A program that joins, and its host (join_messages.hpp):
  join,    ///< joining program: a join_message; the host answers with joined, or refusal
  joined,  ///< host, with descriptors
  ask,     ///< joined program: an ask_message; the host answers with found, or refusal
  found,   ///< host: a found_value
  list,    ///< joined program: a list_message; the host answers with names
  names,   ///< host: a names_message
  leave,   ///< joined program: it has nothing of the domain any more
  // Behind those, whose numbers other builds know:
  crash,   ///< worker, in a signal handler: a crash_record
  memory,  ///< worker: it has too much memory, and waits to be told to leave
  soon,    ///< worker: it will leave before long
  begin,   ///< parent: who stands by takes tasks from now on
  unfit,   ///< worker: it leaves after the task that it is at, and why, as a string
  // The exchange of descriptors, of workers and joined programs with the host (descriptor_messages.hpp):
  deposit,   ///< with the descriptor; the host answers
  fetch,     ///< the host answers, as soon as it can
  forget,    ///< a fetch that is to be answered now
  withdraw,  ///< of what was deposited
  let_go,    ///< of the anchor of what another has deposited
  answer,    ///< host, with the descriptor that was fetched
  // Behind those, as above:
  terminated  ///< worker: why std::terminate was called, as a string
};

struct hello_message {
  std::uint32_t protocol = protocol_version;
  std::vector<module_info> modules;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(protocol, modules);
  }
};

/// Comes with descriptors in this order: control file, arena file, board file, lifeline, bell, and
/// the bell of the program's loop, if there is one.
struct welcome_message {
  std::string crew_name;
  std::uint64_t index = 0;
  std::uint32_t incarnation = 0;
  std::uint16_t participant = 0;
  std::uint64_t entry = 0;  // function token
  bool captured = false;    // stdout and stderr are the parent's pipes
  bool reports_crashes = false;
  bool stands_by = false;           // once ready, it waits for `begin`
  bool leaves_signals = false;      // that mean "end" to the parent
  std::vector<int> left_signals{};  // at which it does nothing
  process_limits limits{};
  std::string device;  // as device::parse reads it
  std::vector<std::byte> payload;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(crew_name, index, incarnation, participant, entry, captured, reports_crashes, stands_by, leaves_signals,
            left_signals, limits, device, payload);
  }
};

/// One received message.
struct message {
  message_kind kind{};
  std::vector<std::byte> body;
  std::vector<unique_fd> descriptors;

  /// Throws errc::not_serializable when the body is none of that type.
  template <class T>
  [[nodiscard]] T read() const {
    input_archive in(body);
    T content;
    in(content);
    return content;
  }
};

/// Encodes `content` as a body.
template <class T>
[[nodiscard]] std::vector<std::byte> body_of(const T& content) {
  output_archive counter;
  counter(content);
  std::vector<std::byte> body(counter.written());
  output_archive out(body);
  out(content);
  return body;
}

/// The same for an error of any length: one that is too long for a message is told as text, and cut.
[[nodiscard]] std::vector<std::byte> body_of(const error_info& what);

/// Two ends of a socket that keeps message boundaries.
[[nodiscard]] std::pair<unique_fd, unique_fd> make_channel();

/// Sends one message. Throws muster::error when the peer is gone (EPIPE, ECONNRESET) or the message is too long.
void send_message(int socket, message_kind kind, std::span<const std::byte> body,
                  std::span<const int> descriptors = {});
/// The same, but never waits; false when there is no room at present.
[[nodiscard]] bool try_send_message(int socket, message_kind kind, std::span<const std::byte> body,
                                    std::span<const int> descriptors = {});

enum class wait_mode { block, poll };

/// The next message, or message_kind::closed; nothing when, with wait_mode::poll, there is none yet.
/// Throws errc::corrupted when the peer sends nonsense.
[[nodiscard]] std::optional<message> receive_message(int socket, wait_mode mode);
/// The same; nothing when there is none at the deadline, or, for no reason, before. `peer`: a pidfd; when that process
/// has ended, message_kind::closed follows its last message, also if another process holds its end of the socket.
[[nodiscard]] std::optional<message> receive_message_until(int socket, deadline until, int peer = -1);

}  // namespace muster::detail
