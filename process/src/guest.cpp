// SPDX-License-Identifier: BSL-1.0
#include "guest.hpp"

#include <unistd.h>

#include <array>
#include <utility>

#include <muster/base/pidfd.hpp>
#include <muster/base/text.hpp>
#include <muster/base/version.hpp>
#include <muster/serialize/detail/modules.hpp>

#include "join_messages.hpp"
#include "listener_impl.hpp"
#include "process_end.hpp"

namespace muster::detail {

guest::guest(supervisor::impl& hub, std::weak_ptr<listener::impl> host, std::shared_ptr<log_relay> log, pid_t pid,
             unique_fd connection, unique_fd process)
    : hub_(hub),
      host_(std::move(host)),
      log_(std::move(log)),
      who_{.pid = pid},
      control_(std::in_place, hub.loop()),
      process_(hub.loop()),
      hello_timer_(hub.loop()),
      death_timer_(hub.loop()) {
  control_->assign(connection.get());
  static_cast<void>(connection.release());  // NOLINT(bugprone-unused-return-value): the stream owns it now
  process_.assign(process.get());
  static_cast<void>(process.release());  // NOLINT(bugprone-unused-return-value): likewise
}

namespace {

void check(const peer_credentials& who) {
  if (who.user != ::geteuid()) {
    throw error(errc::invalid_argument,
                text("the host is of user ", ::geteuid(), ", and user ", who.user, " may not join it"));
  }
  if (who.pid == ::getpid()) {
    throw error(errc::invalid_argument, "a program cannot join itself: it takes part in its domain as the host");
  }
}

void check(const join_message& asked) {
  if (asked.version != join_version) {
    throw error(errc::module_mismatch,
                text("it joins by version ", asked.version, ", and the host (process ", ::getpid(), ", muster ",
                     MUSTER_VERSION_STRING, ") by version ", join_version, ": build both with one muster"));
  }
  const auto mine = build_stamp::of_process();
  if (asked.build.muster == mine.muster) return;
  throw error(errc::module_mismatch,
              text("it is linked with another build of muster: it has ", asked.build.muster, ", and the host (process ",
                   ::getpid(), ") has ", mine.muster, "\nmodules of the host:\n", describe(mine.modules),
                   "modules of the program:\n", describe(asked.build.modules),
                   "link both with one build of muster, and restart them"));
}

error_info to_info(const std::exception& failure) {
  const auto* known = dynamic_cast<const error*>(&failure);
  const bool has_code = known != nullptr && known->code().category() == error_category();
  return {has_code ? static_cast<errc>(known->code().value()) : errc::start_failed, failure.what()};
}

}  // namespace

void refuse(int connection, const std::exception& why) noexcept {
  try {
    send_message(connection, message_kind::refusal, body_of(to_info(why)));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it does not listen
  }
}

// The supervisor owns this object: what handlers hold does not keep it.
template <class F>
auto guest::unless_cancelled(F what) {
  return [weak = weak_from_this(), what](boost::system::error_code cancelled) {
    const auto self = weak.lock();
    if (!cancelled && self) what(*self);
  };
}

void guest::begin(std::chrono::nanoseconds hello_timeout) {
  hub_.keep(shared_from_this());
  watch();
  listen();
  hello_timer_.expires_at(deadline::after(hello_timeout).when());
  hello_timer_.async_wait(unless_cancelled([](guest& self) { self.miss_hello(); }));
}

// Its expiry may be on its way when the hello is heard, and is not cancelled then.
void guest::miss_hello() {
  give_up_on(
      error(errc::timed_out, "it did not say what it wants in the time that listener_options::hello_timeout gives"));
}

void guest::make_room() {
  give_up_on(error(errc::timed_out, "it did not say what it wants before very many others had connected"));
}

// A host that was held up itself may find the hello only now: who has said it in time does not pay for that.
void guest::give_up_on(const error& why) {
  if (!is_silent() || !hear_next() || !is_silent()) return;
  complain(why);
}

void guest::watch() {
  process_.async_wait(stream::wait_read, unless_cancelled([](guest& self) { self.look_for_death(); }));
}

void guest::look_for_death() {
  if (!may_have_ended(process_.native_handle())) return watch();
  hear_last();
  leave();
}

// The pidfd is asked first: while it says no, the number is its own. What cannot be asked now is asked again.
bool guest::is_dead() {
  try {
    return has_ended(process_.native_handle()) || all_threads_have_ended(process_.native_handle());
  } catch (const error&) {
    return false;
  }
}

void guest::look_again_later() {
  death_timer_.expires_after(std::exchange(death_delay_, next_death_delay(death_delay_)));
  death_timer_.async_wait(unless_cancelled([](guest& self) {
    if (!self.is_dead()) return self.look_again_later();
    self.leave();
  }));
}

void guest::listen() {
  control_->async_wait(stream::wait_read, unless_cancelled([](guest& self) { self.hear(); }));
}

void guest::hear() {
  if (control_ && hear_next()) listen();
}

// Whether more may come.
bool guest::hear_next() {
  try {
    auto heard = receive_message(control_->native_handle(), wait_mode::poll);
    if (heard && heard->kind == message_kind::closed) {
      hang_up();
      return false;
    }
    if (heard && heard->kind == message_kind::leave) {
      leave();
      return false;
    }
    if (heard) answer(*heard);
    return true;
  } catch (const std::exception& failure) {
    complain(failure);
    return false;
  }
}

// That it withdraws a descriptor may still be in the socket.
void guest::hear_last() noexcept {
  if (!clerk_) return;
  try {
    while (auto heard = receive_message(control_->native_handle(), wait_mode::poll)) {
      if (heard->kind == message_kind::closed) return;
      static_cast<void>(clerk_->hear(*heard));
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // It died while it sent.
  }
}

void guest::answer(message& heard) {
  if (clerk_ && clerk_->hear(heard)) return;
  if (heard.kind == message_kind::join && !has_joined()) return answer_join(heard);
  if (heard.kind == message_kind::ask && has_joined()) return answer_ask(heard);
  if (heard.kind == message_kind::list && has_joined()) return answer_list(heard);
  throw error(errc::corrupted, text("it sent a message of kind ", static_cast<std::uint32_t>(heard.kind),
                                    has_joined() ? " after" : " before", " it had joined"));
}

void guest::answer_join(const message& heard) {
  check(credentials_of_peer(control_->native_handle()));
  check(heard.read<join_message>());
  who_.participant = hub_.shared()->participants().enrol();
  hub_.shared()->participants().publish(who_.participant, who_.pid);
  hello_timer_.cancel();
  if (const auto host = host_.lock()) host->came(who_);
  try {
    let_in();
  } catch (const error&) {  // it has nothing of the domain, and may live on and try again
    bury();
    throw;
  }
}

void guest::let_in() {
  const auto& files = hub_.shared()->files();
  send_message(control_->native_handle(), message_kind::joined,
               body_of(joined_message{.participant = static_cast<std::uint16_t>(who_.participant)}),
               std::array{files.control.get(), files.arena.get()});
  clerk_ = std::make_shared<descriptor_clerk>(*hub_.shared(), *control_, who_.participant);
}

void guest::answer_ask(const message& heard) {
  const auto asked = heard.read<ask_message>();
  found_value found;
  try {
    const auto host = host_.lock();
    if (!host) throw error(errc::invalid_argument, "the host offers nothing any more");
    found = host->find(asked.name, asked.type);
  } catch (const error& failure) {
    return clerk_->say(message_kind::refusal, body_of(error_info(errc::invalid_argument, failure.what())));
  }
  clerk_->say(message_kind::found, body_of(found));
}

void guest::answer_list(const message& heard) {
  const auto asked = heard.read<list_message>();
  const auto host = host_.lock();
  clerk_->say(message_kind::names, body_of(host ? host->names(asked.from) : names_message()));
}

void guest::complain(const std::exception& failure) {
  log_->say(log_level::warning, text("process ", who_.pid, " is turned away: ", failure.what()));
  if (!control_) return;  // it has hung up
  refuse(control_->native_handle(), failure);
  hang_up();
}

// The connection of one that dies ends too, and of one that is traced nothing else may be heard.
void guest::hang_up() {
  clerk_.reset();
  control_.reset();
  hello_timer_.cancel();
  if (!has_joined()) return hub_.drop(this);
  look_again_later();
}

void guest::leave() {
  bury();
  hub_.drop(this);
}

void guest::bury() {
  if (!has_joined()) return;
  hub_.shared()->bury(who_.participant);
  if (const auto host = host_.lock()) host->left(who_);
  who_.participant = participant_id::none;
}

}  // namespace muster::detail
