// SPDX-License-Identifier: BSL-1.0
#include "remote_exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

std::uint32_t incarnation_in(const domain& shared) {
  return static_cast<std::uint32_t>(shared.occupant(shared.self()) >> 32U);
}

// Who looks whether a descriptor is there has time for the way to the host and back, but not for ever: it may be
// stopped.
constexpr std::chrono::nanoseconds most_overtime = std::chrono::seconds(10);

// Throws what the host has against it.
descriptor_answer read(const message& heard) {
  if (heard.kind == message_kind::closed) {
    throw error(std::error_code(ECONNRESET, std::system_category()),
                "the host of the domain is gone, or this process is to end: descriptors are exchanged no more");
  }
  auto answer = heard.read<descriptor_answer>();
  if (answer.failure != 0) throw error(static_cast<errc>(answer.failure), answer.why);
  return answer;
}

std::string text_of(descriptor_name name) {
  return text("descriptor ", name.number(), " of participant ", index_of(name.depositor()));
}

}  // namespace

remote_exchange::remote_exchange(domain& shared, std::shared_ptr<conversation> host, std::chrono::nanoseconds patience)
    : descriptor_exchange(shared.self(), incarnation_in(shared)),
      memory_(shared.blocks()),
      host_(std::move(host)),
      patience_(patience) {}

// The anchor is the caller's until the host has a hold of its own.
void remote_exchange::deposit(descriptor_name name, unique_fd what, const shared_block& anchor) {
  require_depositable(name, what);
  descriptor_request asked{.name = name.bits(), .anchor = anchor ? memory_.name_of(anchor) : 0};
  const auto answer = host_->ask(message_kind::deposit, asked, std::array{what.get()}, deadline::after(patience_));
  if (answer) return static_cast<void>(read(*answer));
  withdraw(name);  // it may still be heard
  throw error(errc::timed_out, text("the host did not answer within ", patience_.count(), " ns when ", text_of(name),
                                    " was deposited, which is withdrawn"));
}

std::optional<unique_fd> remote_exchange::fetch(descriptor_name name, deadline until) {
  require_here();
  descriptor_request asked{.name = name.bits()};
  const auto overtime = std::min(patience_, most_overtime);
  auto answer = host_->ask_in_time(message_kind::fetch, asked, until, overtime);
  if (!answer) {
    throw error(errc::timed_out, text("the host did not say within ", overtime.count(),
                                      " ns after the deadline whether ", text_of(name), " is there"));
  }
  if (!read(*answer).has_descriptor) return std::nullopt;
  if (!answer->descriptors.empty()) return std::move(answer->descriptors.front());
  throw error(std::error_code(EMFILE, std::system_category()),
              text(text_of(name),
                   " was fetched, but this process has no free descriptors: raise RLIMIT_NOFILE "
                   "(ulimit -n)"));
}

// Who cannot be told is gone.
void remote_exchange::tell(message_kind what, const descriptor_request& about) noexcept {
  if (!is_here()) return;
  try {
    host_->say(what, body_of(about));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

}  // namespace muster::detail
