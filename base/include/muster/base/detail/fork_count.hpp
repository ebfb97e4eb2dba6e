// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/base/unique_fd.hpp>

namespace muster {

/// How often this process and its ancestors have forked since one of them first asked.
///
/// Forks are seen by way of pthread_atfork: not those that go past the C library.
/// Thread safety: safe.
[[nodiscard]] unsigned fork_count() noexcept;

namespace detail {

inline constinit std::atomic<unsigned> forks = 0;

/// Children that this thread forks have these signals blocked, unless it has another mask by then than it has now.
void set_mask_of_children(const sigset_t& mask) noexcept;
/// That mask; `otherwise` where none was set.
[[nodiscard]] sigset_t mask_of_children(const sigset_t& otherwise) noexcept;

/// What a forked child inherits and has no right to end: its destructor never runs there.
template <class... Things>
void leave_to_parent(Things&&... things) {
  // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory the child ends here
  static_cast<void>(new std::tuple<std::remove_cvref_t<Things>...>(std::forward<Things>(things)...));
}

}  // namespace detail

/// A process, in four bytes: for values that lead to memory which a forked child does not have.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class fork_stamp {
public:
  /// Of every process.
  constexpr fork_stamp() noexcept = default;
  /// Of this one.
  [[nodiscard]] static fork_stamp of_this_process() noexcept { return fork_stamp(fork_count()); }

  /// Throws errc::forked, with what to do, where the memory is not. `what` it is that lies there: "a tensor".
  void require_here(const char* what) const {
    if (!is_here()) [[unlikely]]
      throw_unmapped(what);
  }
  [[nodiscard]] bool is_here() const noexcept {
    return forks_ == everywhere || forks_ == detail::forks.load(std::memory_order_relaxed);
  }

private:
  friend class process_mark;
  static constexpr unsigned everywhere = ~0U;

  explicit constexpr fork_stamp(unsigned forks) noexcept : forks_(forks) {}
  [[noreturn]] static void throw_unmapped(const char* what);

  unsigned forks_ = everywhere;
};

/// The process in which it was made, of which a forked child is not: for objects whose threads, workers and shared
/// memory belong to their process alone.
///
/// Thread safety: safe.
/// Cost: a look is one load; asking the kernel who one is would be a system call.
class process_mark {
public:
  process_mark() noexcept;

  [[nodiscard]] bool is_here() const noexcept { return detail::forks.load(std::memory_order_relaxed) == forks_; }
  [[nodiscard]] fork_stamp stamp() const noexcept { return fork_stamp(forks_); }
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
/// says that this process has ended, and for files that are memory. In a child nobody may use the number after that.
///
/// Children are seen by way of pthread_atfork: one that raw clone has made keeps the descriptor.
/// Thread safety: safe, except change().
/// Process safety: the child's copy of the object does nothing.
/// Cost: a forked child looks at as many as there ever were at once.
class closed_in_children {
public:
  explicit closed_in_children(int descriptor);
  closed_in_children(const closed_in_children&) = delete;
  closed_in_children& operator=(const closed_in_children&) = delete;
  ~closed_in_children();

  /// Names another descriptor in place of the first.
  void change(int descriptor) noexcept { place_.store(descriptor + 1); }
  [[nodiscard]] bool is_here() const noexcept { return made_in_.is_here(); }

private:
  const process_mark made_in_;
  std::atomic<int>& place_;
};

/// The same for the descriptor of `owner`, which owns nothing in a forked child once this is destroyed there: the
/// number may be that of another file by then.
///
/// Thread safety: safe, except replace().
/// Lifetime: borrows the owner; destroyed before it.
class kept_from_children {
public:
  /// Requires: `owner` has a descriptor.
  explicit kept_from_children(unique_fd& owner) : owner_(owner), closed_(owner.get()) {}
  kept_from_children(const kept_from_children&) = delete;
  kept_from_children& operator=(const kept_from_children&) = delete;
  ~kept_from_children() {
    if (!closed_.is_here()) static_cast<void>(owner_.release());
  }

  /// Closes the owner's descriptor and gives the owner another one. Requires: called in the process that made this.
  void replace(unique_fd other) noexcept {
    closed_.change(other.get());
    owner_ = std::move(other);
  }

private:
  unique_fd& owner_;
  closed_in_children closed_;
};

}  // namespace muster
