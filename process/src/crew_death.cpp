// SPDX-License-Identifier: BSL-1.0
// How the supervisor kills workers, learns that they are dead, and buries them. docs/design/deaths.md.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <muster/base/pidfd.hpp>
#include <muster/base/text.hpp>

#include "crash_text.hpp"
#include "crew_impl.hpp"
#include "death_delay.hpp"
#include "process_end.hpp"

namespace muster {

namespace {

// Whoever was accepted and had nothing to complain about was on its way, whether or not its word has been heard.
bool has_begun(const worker_lifecycle& life) {
  return life.now() == worker_lifecycle::state::working ||
         (life.now() == worker_lifecycle::state::initializing && !life.has_failed());
}

constexpr const char* why_deserters_are_killed =
    "it had closed its control socket, as exec and closefrom(3) do, and was killed for that: start other programs with "
    "posix_spawn, and close only descriptors that the task has opened";

}  // namespace

// ---- killing

void crew::impl::kill(worker& who) noexcept {
  if (!who.process) return;
  try {
    send_signal(who.process->native_handle(), SIGKILL);
    look_again(who);
  } catch (const std::exception& failure) {
    lose(who, failure);
  }
}

void crew::impl::kill_all() noexcept {
  for (auto& each : workers_) kill(*each);
  for (auto& each : successors_) {
    if (each) kill(*each);
  }
}

// It may go on for ever, and nobody can do anything about it or would hear of it: what it has is given up for lost.
void crew::impl::lose(worker& who, const std::exception& failure) noexcept {
  if (!std::exchange(who.lost, true) && who.stands_by) {
    const scoped_lock lock(mutex_);
    --standing_by_;
    changed_.notify_all();
  }
  guard([&] {
    throw error(errc::pool_broken, text(name_of(who.index), " (process ", who.pid,
                                        ") can neither be ended nor watched: ", failure.what()));
  });
  publish(who);
}

// ---- learning of it

// A process is dead when its pidfd is readable, whoever may keep it from being reaped. It is not readable while a
// tracer that had seized several of its threads has not taken notice of their ends.
bool crew::impl::is_dead(worker& who) {
  return has_ended(who.process->native_handle()) || all_threads_have_ended(who.process->native_handle());
}

void crew::impl::await_end(worker& who) {
  who.process->async_wait(boost::asio::posix::stream_descriptor::wait_read, handler(who, [this, &who] {
                            if (who.process && !detail::may_have_ended(who.process->native_handle()))
                              return await_end(who);
                            look_for_death(who);
                          }));
}

void crew::impl::look_for_death(worker& who) {
  if (!who.process) return;
  try {
    if (!is_dead(who)) return look_again_later(who);
    bury(who);
  } catch (const std::exception& failure) {
    lose(who, failure);
  }
}

// One that was killed, or has hung up, is about to end: it is looked at until it has, because of one that is traced the
// kernel (6.18) does not always say so to those who wait for its pidfd.
void crew::impl::look_again(worker& who) {
  who.death_delay = detail::first_death_delay;
  look_again_later(who);
}

void crew::impl::look_again_later(worker& who) {
  who.death_timer.expires_after(who.death_delay);  // ends an earlier wait
  who.death_delay = detail::next_death_delay(who.death_delay);
  who.death_timer.async_wait(handler(who, [this, &who] { look_for_death(who); }));
}

// The control socket is at its end. The kernel closes that of a process that exits, too, after it has taken its memory.
// A process that has memory then has executed another program, or closed its descriptors: no message reaches it, and
// only a signal ends it. Where /proc does not tell, SIGKILL changes nothing for a process that exits: its status stays.
void crew::impl::end_deserter(worker& who) noexcept {
  guard([&] {
    if (is_dead(who)) return look_for_death(who);
    const auto lives = has_memory(who.process->native_handle());
    if (lives && !*lives) return look_again(who);
    who.deserted = lives.has_value();
    if (who.deserted) static_cast<void>(who.life.deserted());
    kill(who);
  });
}

// ---- burying

// Whoever traces it keeps the zombie, which is reaped when he lets go, but not its status. Its group is reaped too: of
// a program that is the first of a container, or a subreaper, what the worker has started becomes a child when it dies.
exit_status crew::impl::take_status(worker& who) {
  unique_fd process(who.process->release());
  who.process.reset();
  const auto reaped = try_reap(process.get());
  const auto how = reaped ? *reaped : status_of_zombie(process.get());
  hub().have_reaped(std::move(process), {}, options_.own_groups ? who.pid : 0);
  return how;
}

// What it said last is not worth losing what it had.
void crew::impl::gather_words(worker& who) {
  try {
    end_output(who);
    who.words = {.output = who.last_lines.take(), .crash = detail::describe_crash(who.crash, command_.program)};
    if (who.group && who.words.crash.empty()) who.words.crash = who.group->describe_kill();
    if (who.life.now() == worker_lifecycle::state::starting && !who.life.has_failed()) {
      who.words.reason = why_not_started();
    }
    if (!who.terminated.empty()) who.words.reason = std::exchange(who.terminated, {});
    if (who.deserted && who.how.signal() == SIGKILL) who.words.reason = why_deserters_are_killed;
  } catch (const std::exception& failure) {
    log(log_level::warning, text("the last words of ", name_of(who.index), " are lost: ", failure.what()));
  }
  who.crash.clear();
  who.terminated.clear();
}

void crew::impl::bury(worker& who) {
  if (!who.unwelcome) last_end_ = clock::now();  // that one was as good as none
  // Its children are in its group, also when somebody else has reaped it.
  if (options_.own_groups) static_cast<void>(send_signal_to_group(who.process->native_handle(), who.pid, SIGKILL));
  who.how = take_status(who);
  hear_last(who);
  gather_words(who);
  disconnect(who);
  const bool left_in_order = board_.line(who.index).leaving.load(std::memory_order_acquire) != 0;
  shared().bury(who.participant);  // calls recover()
  if (who.stands_by) {
    who.pid = 0;
    bury_successor(who);
  } else {
    count_end(who, left_in_order);
    who.pid = 0;
    replace(who);
  }
  check_gone();
  check_size();
  if (replacing_) start_again_when_all_are_gone();
}

void crew::impl::replace(worker& who) {
  const bool spoiled = client_.repair_start();
  const auto before = who.life.now();
  if (spoiled && before != worker_lifecycle::state::working) who.life.excuse();  // it read what was overwritten
  if (!options_.replaces && has_begun(who.life)) static_cast<void>(who.life.stop());
  if (!is_wanted(who)) static_cast<void>(who.life.stop());
  if (hand_over(who)) return;
  const auto next = who.life.ended(who.how, std::exchange(who.words, {}));
  if (who.unwelcome && next == worker_lifecycle::action::spawn) {
    put_off(who, *who.unwelcome);
  } else {
    perform(who, next);
  }
  publish(who);
}

bool crew::impl::all_are_gone() const {
  const auto is_gone = [](const auto& who) { return !who || who->pid == 0 || who->lost; };
  return std::all_of(workers_.begin(), workers_.end(), is_gone) &&
         std::all_of(successors_.begin(), successors_.end(), is_gone);
}

// A last word may still be in the socket: that it has become ready, why its initializer failed, where it crashed, or
// that it withdraws a descriptor.
void crew::impl::hear_last(worker& who) noexcept {
  try {
    while (auto heard = detail::receive_message(who.control->native_handle(), detail::wait_mode::poll)) {
      if (heard->kind == detail::message_kind::closed) break;
      if (who.clerk && who.clerk->hear(*heard)) continue;
      if (heard->kind == detail::message_kind::ready) {
        who.ready = clock::now();
        if (!who.stands_by) note_ready(who);
        static_cast<void>(who.life.ready());
      }
      if (heard->kind == detail::message_kind::failure) static_cast<void>(who.life.failed(heard->read<error_info>()));
      if (heard->kind == detail::message_kind::crash) who.crash = heard->body;
      if (heard->kind == detail::message_kind::terminated) who.terminated = heard->read<std::string>();
      if (heard->kind == detail::message_kind::memory) who.too_big = true;
      if (heard->kind == detail::message_kind::unfit) note_unfit(who, heard->read<std::string>());
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // It died while it sent: there is no last word.
  }
}

void crew::impl::recover(participant_id dead) noexcept {
  for (auto& each : workers_) {
    if (each->participant != dead || each->pid == 0) continue;
    client_.worker_ended(each->index, each->how, each->words);
  }
}

void crew::impl::count_end(const worker& who, bool left_in_order) {
  const scoped_lock lock(mutex_);
  auto& member = members_[who.index];
  if (member.ready) member.served += clock::now() - *std::exchange(member.ready, std::nullopt);
  const auto before = who.life.now();
  if (before == worker_lifecycle::state::starting || before == worker_lifecycle::state::initializing) {
    if (!who.life.is_excused()) count(who, &crew_statistics::failed_starts);
  } else if (left_in_order && who.how.success()) {
    if (before != worker_lifecycle::state::working) return;
    if (who.index >= size_) return count(who, &crew_statistics::retired);
    count(who, &crew_statistics::recycled);
    count(who, who.unfit     ? &crew_statistics::recycled_unfit
               : who.too_big ? &crew_statistics::recycled_memory
               : who.too_old ? &crew_statistics::recycled_age
                             : &crew_statistics::recycled_tasks);
  } else if (who.how.how() == exit_status::kind::killed) {
    if (before == worker_lifecycle::state::working) count(who, &crew_statistics::killed);
  } else {
    count(who, &crew_statistics::exited);
  }
}

}  // namespace muster
