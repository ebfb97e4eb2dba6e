// SPDX-License-Identifier: BSL-1.0
#include "terminate_handler.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>

#include <muster/base/detail/known_descriptor.hpp>
#include <muster/serialize/error_info.hpp>

#include "channel.hpp"

namespace muster::detail {

namespace {

struct terminate_state {
  known_descriptor control;
  pid_t owner = 0;  // a forked child has the handler too, and is none of the parent's
  std::terminate_handler before = &std::abort;
  std::atomic<pid_t> thread = 0;  // which says why
};

// Never destroyed: threads may live on while static objects are destroyed.
terminate_state& the_state() {
  static auto& instance = *new terminate_state;
  return instance;
}

std::string describe_reason() {
  constexpr std::size_t longest = 4096;  // a message has a limit
  if (std::current_exception() == nullptr) return "std::terminate was called, and no exception was thrown";
  return ("std::terminate was called after throwing " + capture_current_exception().describe()).substr(0, longest);
}

void say_why() noexcept {
  try {
    const auto& control = the_state().control;
    if (!control.is_same()) return;  // the task has closed it
    static_cast<void>(try_send_message(control.get(), message_kind::terminated, body_of(describe_reason())));
  } catch (...) {  // NOLINT(bugprone-empty-catch): the death says the rest
  }
}

// Another thread that comes here meanwhile must not end the process before the first has said why. Of one thread that
// comes here again, what() has failed.
[[noreturn]] void handle_terminate() {
  auto& state = the_state();
  if (::getpid() == state.owner) {
    pid_t first = 0;
    const auto me = ::gettid();
    if (state.thread.compare_exchange_strong(first, me)) {
      say_why();
    } else if (first != me) {
      for (;;) ::pause();
    }
  }
  state.before();
  std::abort();
}

// libstdc++ begins with a handler that writes type and text of the exception to stderr, or, built without it, with
// abort().
bool is_default(std::terminate_handler handler) {
  return handler == &__gnu_cxx::__verbose_terminate_handler || handler == &std::abort;
}

}  // namespace

void report_terminate(int control) {
  if (!is_default(std::get_terminate())) return;
  auto& state = the_state();
  state.control = known_descriptor(control);
  state.owner = ::getpid();
  state.before = std::get_terminate();
  std::set_terminate(&handle_terminate);
}

}  // namespace muster::detail
