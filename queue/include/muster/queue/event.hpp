// SPDX-License-Identifier: BSL-1.0
#pragma once

// Something that happens, in any process of a domain, and on which any number of threads and processes may wait.
//
//     muster::event done;
//     auto work = pool.apply_async([](const muster::event& done) { …; done.set(); }, done);
//     if (!muster::any_of(done, muster::all_of(first, second)).wait_for(1s)) …

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/memory/detail/shared_block.hpp>

namespace muster {

class domain;
class input_archive;
class output_archive;

namespace detail {

class event_wait;

/// Waiting, in terms of Derived::wait_until(deadline).
template <class Derived>
class waitable {
public:
  /// Unblocked by: as wait_until.
  void wait() const { static_cast<void>(self().wait_until(deadline::never())); }
  /// False when the time passed first.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time) const {
    return self().wait_until(deadline::after(time));
  }

private:
  friend Derived;
  waitable() = default;
  [[nodiscard]] const Derived& self() const noexcept { return static_cast<const Derived&>(*this); }
};

}  // namespace detail

/// A handle of an event in shared memory, which is set or clear. Copies of it are the same event, also those that went
/// to workers as arguments, and back as results; where only copies of bytes can go (elements and results of maps,
/// initializers) it is errc::not_serializable.
///
/// set() releases everybody who waits at that moment, even if clear() follows at once. What this process has asked a
/// device to do with other processes' memory has been done by then: set() waits for it first.
///
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
/// Process safety: any participant of the domain may be killed at any instruction: others neither miss a set() that
/// took place, nor sleep for ever because whoever was about to wake them died. In a forked child calls throw
/// errc::forked, unless its domain is inherited (domain_options::inherited), and destructors change nothing.
/// Visibility: what was done before set() is visible to whoever has seen that set(), or a later one, by wait(),
/// is_set() or clear().
/// Lifetime: the event is there as long as any process has a handle; a handle keeps the domain.
/// Cost: 64 KiB of the arena, of which one page is touched. Setting one on which nobody sleeps, clearing, and waiting
/// for one that is set already make no system call, in processes that have used no device memory of others.
class event : public detail::waitable<event> {
public:
  /// A new one, clear, in the program's domain (domain::of_program). Throws errc::out_of_memory.
  event();
  /// A new event, clear, in the domain `where`. Requires: `where` is not null. Throws errc::out_of_memory.
  explicit event(std::shared_ptr<domain> where);
  /// Moving is copying: each handle refers to an event, also one that was moved from.
  event(const event&) noexcept = default;
  event& operator=(const event&) noexcept = default;
  ~event() = default;

  /// Throws only where a device that was waited for reports a failure (errc::device_lost, errc::peer_lost), which is
  /// how this process learns of it; the event is not set then.
  void set() const;
  /// Clears the event, so that later calls of wait() wait for the next set(). Clearing a clear event changes nothing.
  void clear() const;
  /// Returns whether the event is set now, without waiting.
  [[nodiscard]] bool is_set() const;

  /// Waits until it is set, or was set since the call began. False when `until` passed first.
  /// Unblocked by: set(), in any process. Throws ENOSYS before Linux 5.16.
  /// A task that waits keeps its worker from other tasks: if one of those is to set it, that never happens.
  [[nodiscard]] bool wait_until(deadline until) const;

  /// Returns the domain whose memory holds the event.
  [[nodiscard]] const std::shared_ptr<domain>& where() const noexcept { return domain_; }

  /// Whether they are the same event.
  friend bool operator==(const event& left, const event& right) noexcept {
    return left.block_.data() == right.block_.data();
  }

  /// For cereal: sends the event itself. Throws errc::not_serializable where only copies of bytes can go.
  void save(output_archive& archive) const;
  /// Throws errc::corrupted when what came can be no event, errc::invalid_argument when it is of a domain that is not
  /// the program's.
  void load(input_archive& archive);

private:
  friend class detail::event_wait;
  struct memory;
  [[nodiscard]] memory& shared() const;
  [[nodiscard]] std::atomic<std::uint64_t>& word() const;

  std::shared_ptr<domain> domain_;  // before the block, which goes first
  shared_block block_;
};

class combined_event;

namespace detail {

template <class T, class... Ts>
concept one_of = (std::same_as<T, Ts> || ...);

template <class T>
concept event_part = one_of<T, event, combined_event, std::vector<event>, std::vector<combined_event>>;

}  // namespace detail

/// What any_of() and all_of() make: a condition over events, and over other such conditions.
///
/// It is a value that looks at its events when it is asked; nothing is registered anywhere, so making one leaves no
/// trace. To have one in another process, send the events.
///
/// Thread safety: distinct objects: safe. Shared objects: safe while nobody assigns.
/// Process safety: as event.
class combined_event : public detail::waitable<combined_event> {
public:
  /// The most events of which a wait may need one: those of an any_of; of an all_of, the most that any one of its parts
  /// has. So an all_of of any number of events can be waited for.
  static constexpr std::size_t max_width = 127;

  /// Moving is copying: one that was moved from is the same condition still.
  combined_event(const combined_event&) = default;
  combined_event& operator=(const combined_event&) = default;
  ~combined_event() = default;

  /// See any_of() and all_of().
  ///@{
  template <detail::event_part... Parts>
  [[nodiscard]] static combined_event any(Parts... parts) {
    return of(manner::any, std::move(parts)...);
  }
  template <detail::event_part... Parts>
  [[nodiscard]] static combined_event all(Parts... parts) {
    return of(manner::all, std::move(parts)...);
  }
  ///@}

  /// Whether the condition holds now. The events are read one after the other.
  [[nodiscard]] bool is_set() const;

  /// Waits until the condition holds, or an event of which it needs one was set since the call began. Of those that an
  /// all_of needs, all must be set when they are looked at. False when `until` passed first.
  /// Unblocked by: set() of an event that it needs, in any process. Throws ENOSYS before Linux 5.16.
  [[nodiscard]] bool wait_until(deadline until) const;

private:
  friend class detail::event_wait;

  enum class manner : std::uint8_t { any, all };

  explicit combined_event(manner how) noexcept : how_(how) {}
  template <class... Parts>
  static combined_event of(manner how, Parts&&... parts) {
    combined_event made(how);
    (made.add(std::move(parts)), ...);
    made.check();
    return made;
  }

  void add(event part) { events_.push_back(std::move(part)); }
  void add(combined_event part) { parts_.push_back(std::move(part)); }
  void add(std::vector<event> parts);
  void add(std::vector<combined_event> parts);
  void check();
  [[nodiscard]] const std::shared_ptr<domain>& where() const noexcept;

  manner how_;
  std::size_t width_ = 0;
  std::vector<event> events_;
  std::vector<combined_event> parts_;
};

/// Set while at least one of its parts is. Parts are events, combined events, and vectors of either.
/// Throws errc::invalid_argument for no parts, parts of different domains, more than combined_event::max_width events.
template <detail::event_part... Parts>
[[nodiscard]] combined_event any_of(Parts... parts) {
  return combined_event::any(std::move(parts)...);
}

/// Set while all of its parts are. Otherwise as any_of.
template <detail::event_part... Parts>
[[nodiscard]] combined_event all_of(Parts... parts) {
  return combined_event::all(std::move(parts)...);
}

}  // namespace muster
