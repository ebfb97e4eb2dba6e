// SPDX-License-Identifier: BSL-1.0
#include "member_claim.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/detail/incoming_message.hpp>
#include <muster/rpc/member_lost.hpp>

namespace muster::detail {

namespace {

// A process that has ended before the supervisor was told is a zombie, or not there.
bool is_running(pid_t pid) {
  std::ifstream status(text("/proc/", pid, "/stat"));
  std::string all;
  if (!std::getline(status, all)) return false;
  const auto name_end = all.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= all.size()) return true;
  const char state = all[name_end + 2];
  return state != 'Z' && state != 'X';
}

[[noreturn]] void refuse(const group_table& table, std::size_t member, const rank_identity& who) {
  throw error(errc::invalid_argument,
              text("'", table.name_of(member), "' is a living member of the RPC group '", table.name(),
                   "' already, in process ", who.pid, ": its name can be joined when it has left or died"));
}

[[noreturn]] void give_up(const group_table& table, std::size_t member, const rank_identity& who) {
  throw error(errc::timed_out, text("'", table.name_of(member), "' of the RPC group '", table.name(), "' was process ",
                                    who.pid, ", which has died; the program has not noticed in time"));
}

// Until the death of the process that was the member is known.
std::uint64_t await_vacancy(const group_table& table, const domain& where, std::size_t member) {
  auto& word = table.member(member).identity;
  const auto time = table.shape().timeout;
  const auto until = time == forever ? deadline::never() : deadline::after(time);
  for (;;) {
    const auto deaths = where.deaths().load(std::memory_order_acquire);
    const auto found = word.load(std::memory_order_seq_cst);
    const auto who = rank_identity::unpack(found);
    if (found == 0 || !who.is_alive(where)) return found;
    if (is_running(who.pid)) refuse(table, member, who);
    const futex_expectation dead{.word = futex_address(where.deaths()), .expected = deaths};
    if (!where.sleep({&dead, 1}, until) && until.expired()) give_up(table, member, who);
  }
}

}  // namespace

std::uint32_t claim_member(const group_table& table, const domain& where, std::size_t member) {
  auto& line = table.member(member);
  const auto self = rank_identity::of(where, where.self());
  auto found = await_vacancy(table, where, member);
  while (!line.identity.compare_exchange_strong(found, self.pack(), std::memory_order_seq_cst)) {
    found = await_vacancy(table, where, member);
  }
  const auto before = member_view::of(table, member);
  const auto incarnation = before.incarnation + 1;
  const auto how_it_went = before.state == presence::left ? presence_before_left : 0;
  line.presence.store(pack_presence(incarnation, presence::expected) | how_it_went, std::memory_order_seq_cst);
  return incarnation;
}

void set_presence(const group_table& table, std::size_t member, std::uint32_t incarnation, std::uint64_t now) noexcept {
  auto& line = table.member(member);
  auto found = line.presence.load(std::memory_order_seq_cst);
  const bool joins = static_cast<presence>(now & 0xffU) == presence::joined;
  if (found >> 32U == incarnation && (found & 0xffU) != (now & 0xffU)) {
    (joins ? line.joined_at : line.left_at).store(table.new_stamp(), std::memory_order_seq_cst);
  }
  while (found >> 32U == incarnation &&
         !line.presence.compare_exchange_weak(found, now | (found & presence_before_left), std::memory_order_seq_cst)) {
    continue;
  }
}

void release_member(const group_table& table, std::size_t member, std::uint32_t incarnation) noexcept {
  set_presence(table, member, incarnation, pack_presence(incarnation, presence::left));
  table.member(member).identity.store(0, std::memory_order_seq_cst);
}

std::exception_ptr timeout_of(const group_table& table, const pending_call& which, bool had_begun) {
  return std::make_exception_ptr(task_error(error_info(
      errc::timed_out,
      text(which.subject().in_words(), " at '", table.name_of(which.peer().member), "' did not end in time; it ",
           had_begun ? "had begun, and was asked to stop" : "has not begun, and never will",
           ": see rpc_call_options::deadline"))));
}

std::exception_ptr cancelled_by_leaving(const group_table& table, std::size_t member) {
  return std::make_exception_ptr(
      task_error(error_info(errc::cancelled, text("'", table.name_of(member), "' has left the RPC group '",
                                                  table.name(), "' before its call was answered"))));
}

std::shared_ptr<rpc_job> take_request(message_ring& from, ring_position at) noexcept {
  try {
    incoming_message message(from, at);
    auto job = std::make_shared<rpc_job>();
    job->message = message.take_out();
    const auto frame = job->message.frame();
    if (frame.size() < sizeof job->head) return nullptr;
    std::memcpy(&job->head, frame.data(), sizeof job->head);
    return job;
  } catch (const std::exception&) {  // it was overwritten, or there is no memory for it: its caller waits
    return nullptr;
  }
}

}  // namespace muster::detail
