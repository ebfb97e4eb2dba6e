// SPDX-License-Identifier: BSL-1.0
#include "worker_main.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>
#include <muster/process/worker_environment.hpp>

#include "channel.hpp"
#include "conversation.hpp"
#include "crash_handler.hpp"
#include "lifeline.hpp"
#include "remote_exchange.hpp"
#include "spawn.hpp"
#include "terminate_handler.hpp"
#include "unix_socket.hpp"

namespace muster {

bool worker_environment::report_ready() {
  control_.say(detail::message_kind::ready);
  if (!identity_.stands_by) return true;
  const auto answer = control_.hear_word(deadline::never());
  return answer && answer->kind == detail::message_kind::begin;
}

void worker_environment::report_failure(const error_info& why) {
  control_.say(detail::message_kind::failure, detail::body_of(why));
}

void worker_environment::report_memory() { control_.say(detail::message_kind::memory); }

void worker_environment::report_soon() { control_.say(detail::message_kind::soon); }

void worker_environment::report_unfit(std::string_view why) {
  control_.say(detail::message_kind::unfit, detail::body_of(std::string(why)));
}

namespace detail {

namespace {

// Its group is in the background: it may write to the terminal all the same, and so may what its tasks execute. Handled
// instead, the write would begin again and be answered by the signal again, for ever.
void ignore_background() { std::signal(SIGTTOU, SIG_IGN); }

// Handled, not ignored: what a task executes has them as usual then. Those that came meanwhile, come now. Ctrl-C is for
// the program in any case, which decides what becomes of its workers.
void begin_to_hear_signals(bool leaves_them) {
  sigset_t ending;
  ::sigemptyset(&ending);
  for (const int signal : ending_signals) {
    ::sigaddset(&ending, signal);
    if (leaves_them || signal == SIGINT) do_nothing_at(signal);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
}

// Each line is written when it ends, whole: into a file or a pipe, too, nothing that a task has printed is cut by lines
// of other workers, comes late, or is lost with its worker.
void print_line_by_line() {
  static std::array<char, std::size_t{1} << 16U> room;
  std::setvbuf(stdout, room.data(), _IOLBF, room.size());
}

// The parent's answer to our hello. Without one there is nobody to work for, or to complain to.
message shake_hands(int control) {
  static_cast<void>(receive_message(control, wait_mode::block));  // the greeting, looked at by init()
  send_message(control, message_kind::hello, body_of(hello_message{.modules = loaded_modules()}));
  auto answer = receive_message(control, wait_mode::block);
  if (!answer || answer->kind != message_kind::welcome || answer->descriptors.size() < 5) ::_exit(EXIT_FAILURE);
  return std::move(*answer);
}

int work(message answer, int control) {
  auto welcome = answer.read<welcome_message>();
  welcome.limits.apply();
  begin_to_hear_signals(welcome.leaves_signals);
  do_nothing_at(welcome.left_signals);
  print_line_by_line();
  if (welcome.reports_crashes) report_crashes(control);
  report_terminate(control);
  auto& descriptors = answer.descriptors;
  // Never closed: static objects, which are destroyed after this, may take for ever.
  static_cast<void>(hold_lifeline(descriptors[3]).release());  // NOLINT(bugprone-unused-return-value)
  descriptors[3].reset();
  // Tensors of the user's may outlive this function, in static objects.
  const auto shared =
      std::make_shared<domain>(domain_files{.control = std::move(descriptors[0]), .arena = std::move(descriptors[1])},
                               static_cast<participant_id>(welcome.participant));
  const auto host = std::make_shared<conversation>(control);  // which is open until the process has ended
  shared->exchange_by(std::make_unique<remote_exchange>(*shared, host, std::chrono::nanoseconds::max()));
  domain::enter(shared);
  board tasks(std::move(descriptors[2]));
  token_decoder functions(tasks.modules());
  const auto label = text(welcome.crew_name, '#', welcome.index);
  ::prctl(PR_SET_NAME, label.c_str());
  worker_environment environment({.crew_name = std::move(welcome.crew_name),
                                  .index = welcome.index,
                                  .incarnation = welcome.incarnation,
                                  .stands_by = welcome.stands_by,
                                  .device = device::parse(welcome.device),
                                  .payload = std::move(welcome.payload)},
                                 *shared, tasks, functions,
                                 {.supervisor = known_descriptor(descriptors[4].get()),
                                  .loop = known_descriptor(descriptors.size() > 5 ? descriptors[5].get() : -1)},
                                 *host);
  return functions.decode<worker_entry>(static_cast<function_token>(welcome.entry))(environment);
}

}  // namespace

void run_worker() {
  ignore_background();
  const unique_fd control(control_descriptor);
  // The parent must see the end of the connection when this process executes another program, also while children live
  // that a task has forked.
  const closed_in_children is_of_this_process(control.get());
  int code = EXIT_FAILURE;
  try {
    die_with(credentials_of_peer(control.get()).pid);
    system_call("fcntl FD_CLOEXEC", [](int fd) { return ::fcntl(fd, F_SETFD, FD_CLOEXEC); }, control.get());
    auto answer = shake_hands(control.get());
    try {
      code = work(std::move(answer), control.get());
    } catch (const std::exception& failure) {
      send_message(control.get(), message_kind::failure,
                   body_of(error_info(errc::start_failed, text_or_none(failure.what()))));
    }
  } catch (const std::exception&) {
    std::exit(EXIT_FAILURE);  // the parent is gone: nobody listens
  }
  std::exit(code);  // as a program ends: static objects are destroyed, output is flushed
}

}  // namespace detail

}  // namespace muster
