// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <tuple>
#include <type_traits>
#include <utility>

namespace muster {

/// How often this process and its ancestors have forked since one of them first asked.
///
/// Forks are seen by way of pthread_atfork: not those that go past the C library.
/// Thread safety: safe.
[[nodiscard]] unsigned fork_count() noexcept;

namespace detail {

inline constinit std::atomic<unsigned> forks = 0;

/// What a forked child inherits and has no right to end: its destructor never runs there.
template <class... Things>
void leave_to_parent(Things&&... things) {
  // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory the child ends here
  static_cast<void>(new std::tuple<std::remove_cvref_t<Things>...>(std::forward<Things>(things)...));
}

}  // namespace detail

/// The process in which it was made, of which a forked child is not: for objects whose threads, workers and shared
/// memory belong to their process alone.
///
/// Thread safety: safe.
/// Cost: a look is one load; asking the kernel who one is would be a system call.
class process_mark {
public:
  process_mark() noexcept;

  [[nodiscard]] bool is_here() const noexcept { return detail::forks.load(std::memory_order_relaxed) == forks_; }
  /// Throws errc::forked, with what to do, in a forked child. `what` it is that is used there: "a pool".
  void require_here(const char* what) const {
    if (!is_here()) [[unlikely]]
      throw_forked(what);
  }

private:
  [[noreturn]] void throw_forked(const char* what) const;

  unsigned forks_;
  pid_t process_;
};

/// While it lives, forked children close the descriptor before they do anything else: for ends of pipes whose closing
/// says that this process has ended. In a child nobody may use the number after that.
///
/// Thread safety: safe.
/// Cost: a forked child looks at as many as there ever were at once.
class closed_in_children {
public:
  explicit closed_in_children(int descriptor);
  closed_in_children(const closed_in_children&) = delete;
  closed_in_children& operator=(const closed_in_children&) = delete;
  ~closed_in_children();

private:
  std::atomic<int>& place_;
};

}  // namespace muster
