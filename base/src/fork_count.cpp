// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/fork_count.hpp>

#include <pthread.h>
#include <unistd.h>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

// A list that only grows, since a fork may come at any instruction of any thread, and what the child goes over must be
// whole.
struct place {
  std::atomic<int> descriptor;  // plus one; 0: none
  place* next;
};
constinit std::atomic<place*> places = nullptr;

struct children_mask {
  sigset_t signals{};
  sigset_t own{};  // of the thread
  bool is_set = false;
};
thread_local constinit children_mask of_children;

bool are_alike(const sigset_t& a, const sigset_t& b) noexcept {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (::sigismember(&a, signal) != ::sigismember(&b, signal)) return false;
  }
  return true;
}

// Unless the program has set another mask there, for the child.
void restore_mask() noexcept {
  if (!of_children.is_set) return;
  of_children.is_set = false;
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  if (are_alike(now, of_children.own)) ::pthread_sigmask(SIG_SETMASK, &of_children.signals, nullptr);
}

void begin_child() noexcept {
  restore_mask();
  detail::forks.fetch_add(1, std::memory_order_relaxed);
  for (auto* each = places.load(); each != nullptr; each = each->next) {
    if (const int found = each->descriptor.exchange(0); found != 0) ::close(found - 1);
  }
}

// A free one, or a new one.
std::atomic<int>& take_place(int content) {
  for (auto* each = places.load(); each != nullptr; each = each->next) {
    int none = 0;
    if (each->descriptor.compare_exchange_strong(none, content)) return each->descriptor;
  }
  auto* const made = new place{.descriptor = content, .next = places.load()};
  while (!places.compare_exchange_weak(made->next, made)) continue;
  return made->descriptor;
}

}  // namespace

void detail::set_mask_of_children(const sigset_t& mask) noexcept {
  static_cast<void>(fork_count());  // children are seen from now on
  of_children = {.signals = mask, .is_set = true};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &of_children.own);
}

sigset_t detail::mask_of_children(const sigset_t& otherwise) noexcept {
  return of_children.is_set ? of_children.signals : otherwise;
}

unsigned fork_count() noexcept {
  // It fails only without memory for its list; then a forked child takes itself for its parent.
  static const int registered = ::pthread_atfork(nullptr, nullptr, &begin_child);
  static_cast<void>(registered);
  return detail::forks.load(std::memory_order_relaxed);
}

process_mark::process_mark() noexcept : forks_(fork_count()), process_(::getpid()) {}

closed_in_children::closed_in_children(int descriptor) : place_(take_place(descriptor + 1)) {}

// In a child the place has been emptied, and may have been taken for a descriptor of the child's own.
closed_in_children::~closed_in_children() {
  if (made_in_.is_here()) place_.store(0);
}

void fork_stamp::throw_unmapped(const char* what) {
  throw error(
      errc::forked,
      text(what, " in shared memory is used in process ", ::getpid(),
           ", which does not have that memory: a forked child inherits none of its parent's. Take a copy before "
           "fork(), or make the domain with domain_options::inherited"));
}

void process_mark::throw_forked(const char* what) const {
  throw error(errc::forked,
              text(what, " of process ", process_, " is used in process ", ::getpid(),
                   ", which was forked from it and has neither its threads nor its workers: make pools after fork() "
                   "and daemon(); a forked child calls muster::init(argc, argv) and makes a pool of its own"));
}

}  // namespace muster
