// SPDX-License-Identifier: BSL-1.0
// How a crew starts processes, and what it does when it cannot. docs/design/deaths.md.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <new>
#include <random>
#include <utility>

#include <boost/system/system_error.hpp>

#include <muster/base/pidfd.hpp>
#include <muster/base/text.hpp>

#include "crew_impl.hpp"
#include "output_pipe.hpp"
#include "spawn.hpp"

namespace muster {

namespace {

std::string random_mark() {
  std::random_device entropy;
  return text(std::hex, entropy(), entropy(), entropy());
}

bool is_lack(const std::error_code& code) {
  constexpr std::array causes = {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOBUFS, ETOOMANYREFS};
  return code.category() == std::system_category() &&
         std::find(causes.begin(), causes.end(), code.value()) != causes.end();
}

// Processes, memory or descriptors, also on their way in messages, that others may give back. Asio's errors have a
// category of Boost's own.
bool is_lack(const std::exception& failure) {
  if (const auto* ours = dynamic_cast<const std::system_error*>(&failure)) return is_lack(ours->code());
  if (const auto* boosts = dynamic_cast<const boost::system::system_error*>(&failure))
    return is_lack(std::error_code(boosts->code().value(), std::system_category()));
  return dynamic_cast<const std::bad_alloc*>(&failure) != nullptr;
}

// Of numbers of the domain, or of its memory. Who had them before can have them again.
bool is_full(const std::exception& failure) {
  const auto* const ours = dynamic_cast<const error*>(&failure);
  return ours != nullptr && ours->code() == errc::out_of_memory;
}

// For those who have a failure to tell of already.
void try_to_kill(const unique_fd& process) noexcept {
  try {
    send_signal(process.get(), SIGKILL);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // It ends all the same, when it finds nobody at the other end of its socket.
  }
}

}  // namespace

// Until it has a process, `who` is starting, and its timer or replace_all() comes back to it.
void crew::impl::spawn(worker& who) {
  if (replacing_ || giving_up_) return;  // when all are gone; or never
  client_.repair_start();
  who.too_old = who.too_big = who.unfit = who.leaves = false;
  board_.line(who.index).order.store(static_cast<std::uint32_t>(order_for(who)), std::memory_order_release);
  try {
    start_process(who);
    who.follows_unwelcome = std::exchange(who.unwelcome, std::nullopt).has_value();
    if (!who.follows_unwelcome) end_lack(who);
  } catch (const std::exception& failure) {
    const bool may_pass = is_lack(failure) || (who.incarnation > 0 && is_full(failure));
    if (may_pass && options_.start_patience > options_.start_patience.zero()) return put_off(who, failure.what());
    fail_start(who, failure);
  }
}

std::string crew::impl::why_not_started() const {
  return options_.program.empty() ? detail::describe_foreign_start() : std::string();
}

// Not called again from here: a million tries neither nest nor keep the loop from others.
void crew::impl::fail_start(worker& who, const std::exception& failure) {
  const auto hint = why_not_started();
  const auto reason = hint.empty() ? text(failure.what()) : text(failure.what(), "; ", hint);
  if (who.life.failures() == 0) {
    log(log_level::warning, text(name_of(who.index), " could not be started: ", reason));
  }
  static_cast<void>(who.life.failed(error_info(errc::start_failed, reason)));
  const auto next = who.life.ended(exit_status::lost());
  if (next != worker_lifecycle::action::spawn) return perform(who, next);
  spawn_later(who, std::chrono::nanoseconds(0));
}

void crew::impl::spawn_later(worker& who, std::chrono::nanoseconds delay) {
  who.start_timer.expires_after(delay);
  who.start_timer.async_wait(handler([this, &who] {
    if (who.pid != 0 || who.life.now() != worker_lifecycle::state::starting) return;
    if (is_wanted(who)) return spawn(who);
    end_preparation(who);
  }));
}

// ---- want of processes, memory or descriptors: it may pass, and those that run go on

void crew::impl::put_off(worker& who, const std::string& reason) {
  const auto now = clock::now();
  if (!lacking_since_) {
    lacking_since_ = now;
    log(log_level::warning, text(name_of(who.index), " cannot be started at present, which is tried again: ", reason));
  }
  const bool alone = std::all_of(workers_.begin(), workers_.end(), [](const auto& each) { return each->pid == 0; });
  const auto since = alone ? std::max(*lacking_since_, last_end_) : *lacking_since_;
  const auto left = options_.start_patience - (now - since);
  if (left <= left.zero()) {
    const error_info why(errc::start_failed, reason);
    if (alone) return give_up(why);
    tell_of_lack(why);
  }
  spawn_later(who, who.delay.next(left));
}

// One that could not be answered for want of something is not to blame, and need not wait for what may never come:
// another is started in its place as if it had been put off itself. Nobody takes it for a sign that processes can be
// had: the lack began with the first of these, and ends with the first that is answered, or the crew's patience.
void crew::impl::fail_handshake(worker& who, const std::exception& failure) {
  const auto reason = text("the handshake failed: ", failure.what());
  const bool may_pass = who.life.now() == worker_lifecycle::state::starting && is_lack(failure) &&
                        options_.start_patience > options_.start_patience.zero();
  if (!may_pass) return perform(who, who.life.failed(error_info(errc::start_failed, reason)));
  if (!who.stands_by) who.unwelcome = reason;
  who.life.excuse();
  kill(who);
}

// Whoever waits for all workers need not wait for what may never come; the crew goes on with those that it has.
void crew::impl::tell_of_lack(const error_info& why) {
  tell_size(&why);
  const scoped_lock lock(mutex_);
  lack_ = why;
  changed_.notify_all();
}

void crew::impl::end_lack(worker& who) {
  who.delay.reset();
  if (!lacking_since_) return;
  lacking_since_.reset();
  log(log_level::info, text("workers of '", options_.name, "' can be started again"));
  const scoped_lock lock(mutex_);
  lack_.reset();
}

// ---- one process

void crew::impl::start_process(worker& who) {
  hub().make_room_for_children();
  auto [ours, theirs] = detail::make_channel();
  const auto mark = random_mark();
  who.started = clock::now();
  who.ready.reset();
  detail::send_message(ours.get(), detail::message_kind::greeting, std::as_bytes(std::span(mark)));
  std::array<detail::output_pipe, 2> pipes;
  if (options_.capture != output_capture::none) pipes = {detail::make_output_pipe(), detail::make_output_pipe()};
  const auto participant = shared().participants().enrol();
  try {
    if (!options_.memory_group.empty()) {
      who.group = std::make_unique<detail::memory_group>(options_.memory_group, options_.memory_limit);
    }
    auto started = execute(who.index, {.program = command_.file,
                                       .arguments = command_.arguments,
                                       .label = text("[muster worker ", options_.name, '#', who.index, ']'),
                                       .worker_mark = mark,
                                       .environment = environment_,
                                       .state = program_state_,
                                       .own_environment = assignment_of(who.index).environment,
                                       .control = theirs.get(),
                                       .out = pipes[0].write_end.get(),
                                       .err = pipes[1].write_end.get()});
    connect(who, started, ours, pipes);
  } catch (const std::exception&) {
    disconnect(who);
    shared().participants().retire(participant);
    throw;
  }
  who.participant = participant;
  ++who.incarnation;
  shared().participants().publish(participant, who.pid);
  {
    const scoped_lock lock(mutex_);
    count(who, &crew_statistics::started);
    if (who.stands_by) ++standing_by_;
  }
  if (!who.stands_by) client_.worker_started(who.index, who.pid);
  publish(who);
  try {
    watch(who);
    listen(who);
    for (const auto which : {output_stream::out, output_stream::err}) {
      if (who.streams[static_cast<std::size_t>(which)].pipe) listen_to_output(who, which);
    }
  } catch (const std::exception& failure) {  // a process that nobody listens to is as one that cannot be answered
    fail_handshake(who, failure);
  }
}

// All or nothing: a process that nobody would watch is not left behind.
void crew::impl::connect(worker& who, detail::child& started, unique_fd& control,
                         std::array<detail::output_pipe, 2>& pipes) {
  const auto take = [this](auto& stream, unique_fd& from) {
    stream.emplace(hub().loop(), from.get());
    static_cast<void>(from.release());  // NOLINT(bugprone-unused-return-value): the stream owns it now
  };
  try {
    if (who.group) who.group->enter(started.pid);
    take(who.control, control);
    for (std::size_t index = 0; index < pipes.size(); ++index) {
      if (pipes[index].read_end) take(who.streams[index].pipe, pipes[index].read_end);
    }
    take(who.process, started.process);
  } catch (const std::exception&) {
    try_to_kill(started.process);
    hub().have_reaped(std::move(started.process));
    throw;
  }
  who.pid = started.pid;
  who.serial = ++processes_;
  who.lost = who.deserted = false;
}

void crew::impl::watch(worker& who) {
  await_end(who);
  who.start_timer.expires_at(deadline::after(options_.start_timeout).when());
  who.start_timer.async_wait(handler(who, [this, &who] { perform(who, who.life.timed_out()); }));
}

}  // namespace muster
