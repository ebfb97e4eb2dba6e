// SPDX-License-Identifier: BSL-1.0
#pragma once

// What shared_queue and p2p_queue have in common.

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/pending_work.hpp>
#include <muster/queue/detail/incoming_message.hpp>
#include <muster/queue/detail/message_ring.hpp>
#include <muster/queue/detail/outgoing_message.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/transfer.hpp>

namespace muster {

namespace detail {

/// Throws errc::invalid_argument.
[[noreturn]] void throw_no_queue();
/// Throws errc::not_serializable.
[[noreturn]] void throw_queue_cannot_go();
/// Waits for what is pending (pending_work). What fails then is found by whoever looks at the memory.
void finish_quietly() noexcept;

/// Enough for the values that need no block.
template <class T>
inline constexpr std::size_t default_inline_bytes = codec<T>::is_fixed ? codec<T>::fixed_bytes : 240;

template <class T>
[[nodiscard]] T decode_message(incoming_message& message) {
  try {
    return codec<T>::decode_value(message.open(), &message);
  } catch (...) {
    message.give_up();
    throw;
  }
}

/// Under transfer::move what was pushed is the caller's no longer: `push` is called with it, and it is made empty then.
template <class T, class Push>
bool give_away(T& value, transfer how, const Push& push) {
  if constexpr (!std::is_trivially_copyable_v<T> && std::default_initializable<T> &&
                std::is_nothrow_move_assignable_v<T>) {
    if (how == transfer::move) {
      T empty{};  // before: what it throws must not come after the message has gone
      const bool pushed = push();
      if (pushed) value = std::move(empty);
      return pushed;
    }
  }
  return push();
}

}  // namespace detail

/// A message that was taken out of a queue on approval: until it is acknowledged, it goes back to its place when this
/// object or its process goes. Requires: one that has been moved from is only assigned to, or destroyed.
///
/// What this process has asked a device to do with other processes' memory (a tensor on a GPU that came with the
/// message) has been done when the message is acknowledged, or goes back: both wait for it.
///
/// Thread safety: distinct objects: safe, but for those of one p2p_queue, which take one at a time. Shared objects:
/// unsafe.
/// Lifetime: keeps the queue. What is kept of the value's shared memory (a tensor) outlives the lease, acknowledged or
/// not.
template <class T>
class message_lease {
public:
  [[nodiscard]] T& operator*() const noexcept { return *held_->value; }
  [[nodiscard]] T* operator->() const noexcept { return &*held_->value; }

  /// Takes the message out of the queue for good; the value stays. Again: nothing. Requires: of a p2p_queue nobody else
  /// takes meanwhile.
  /// Throws errc::corrupted when a block that came with it is not there any more; what a device that was waited for
  /// reports (errc::device_lost, errc::peer_lost), errc::forked in a forked child: then the message is still on lease.
  void ack() {
    if (held_->acknowledged) return;
    held_->ring->require_here();
    detail::pending_work::await();
    held_->acknowledged = true;
    held_->message->accept();
  }

private:
  template <class U, queue_kind Kind>
  friend class message_queue;

  // Made before the message is claimed, so that none is claimed in vain. The value goes before the message does, which
  // goes back unless it was acknowledged.
  struct holder {
    explicit holder(std::shared_ptr<message_ring> from) noexcept : ring(std::move(from)) {}
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;
    ~holder() {
      if (value && !acknowledged && ring->is_here()) detail::finish_quietly();
    }
    void take(ring_position at) {
      message.emplace(*ring, at, message_keeping::when_decoded);
      value.emplace(detail::decode_message<T>(*message));
    }

    std::shared_ptr<message_ring> ring;
    std::optional<incoming_message> message;
    std::optional<T> value;
    bool acknowledged = false;
  };
  explicit message_lease(std::unique_ptr<holder> held) noexcept : held_(std::move(held)) {}

  // What `claim` claims, if it does.
  template <class Claim>
  static std::optional<message_lease> made_by(const std::shared_ptr<message_ring>& from, const Claim& claim) {
    auto held = std::make_unique<holder>(from);
    ring_position at;
    if (claim(at) != queue_result::done) return std::nullopt;
    held->take(at);
    return message_lease(std::move(held));
  }

  std::unique_ptr<holder> held_;
};

/// The calls of both kinds of queues. Use shared_queue or p2p_queue, whose headers say what is promised.
///
/// Calls that have to sleep (push and pop, lease, their forms with a time) throw ENOSYS before Linux 5.16; the try_
/// forms never do.
///
/// In a forked child calls throw errc::forked; what it drops there, leases too, it leaves to its parent.
///
/// Requires: `T` is transportable, else it does not compile.
///
/// Thread safety: as the kind of queue.
template <class T, queue_kind Kind>
class message_queue {
  static_assert((detail::require_transportable<T>(), true));

public:
  using value_type = T;
  /// A message that lease() took and that is not acknowledged yet.
  using lease_type = message_lease<T>;

  /// No queue: to be assigned to. So is one that has been moved from; all calls but the conversion to bool, assignment
  /// and sending it throw errc::invalid_argument then.
  message_queue() = default;
  /// Makes a queue for `capacity` messages in the program's domain.
  /// Throws errc::invalid_argument in a worker, and for a capacity of 0 or above 2^24 - 1 or more inline_bytes than
  /// there can be; errc::out_of_memory when the cells do not fit into the arena.
  /// Cost: under a millisecond to find out how long to spin, unless options.spin says it.
  explicit message_queue(std::size_t capacity, queue_options options = {}) {
    if (options.inline_bytes == 0) options.inline_bytes = detail::default_inline_bytes<T>;
    ring_ = message_ring::make(Kind, capacity, options);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return ring_ != nullptr; }

  /// Puts a message behind all others; waits while the queue is full. False when the queue is closed.
  ///
  /// What of it lies in shared memory (tensors) goes by reference, or by copy where that is asked for: then neither
  /// side sees what the other writes, and it need not lie in the queue's domain. With transfer::move an rvalue is given
  /// away: once it has been pushed it is as if default-constructed, and unchanged where the call returns false or
  /// throws, and where T is nothing but its bytes, has no default constructor, or may throw when it is moved to; an
  /// lvalue stays the caller's, and goes by reference. Unblocked by: a consumer that frees a cell, close(). Throws what
  /// the value's serialize function throws; errc::out_of_memory, with what was needed and what there is, where the
  /// arena has no room for a long message or no descriptors for its blocks (one for each, and one for a long message);
  /// errc::not_serializable for more than 65 535 blocks; errc::invalid_argument for a block of another domain. Nothing
  /// is pushed then, and nothing is held.
  bool push(const T& value, transfer how = transfer::reference) const {
    return push_until(value, deadline::never(), how);
  }
  /// Pushes an rvalue, which transfer::move gives away.
  bool push(T&& value, transfer how) const { return push_until(std::move(value), deadline::never(), how); }
  /// Pushes a message, or gives up when `wait` has passed. Returns false then too; is_closed() tells which it was.
  /// Throws as push().
  template <class Rep, class Period>
  bool push_for(const T& value, std::chrono::duration<Rep, Period> wait, transfer how = transfer::reference) const {
    return push_until(value, deadline::after(wait), how);
  }
  /// Pushes an rvalue, which transfer::move gives away, or gives up when `wait` has passed.
  template <class Rep, class Period>
  bool push_for(T&& value, std::chrono::duration<Rep, Period> wait, transfer how) const {
    return push_until(std::move(value), deadline::after(wait), how);
  }
  /// Pushes a message, or gives up at `until`. Returns as push_for().
  bool push_until(const T& value, deadline until, transfer how = transfer::reference) const {
    return send(
        value, how, [&](message_ring& to, const message_view& what) { return to.push(what, until); },
        [&](outgoing_message& what) { return what.push(until); });
  }
  /// Pushes an rvalue, which transfer::move gives away, or gives up at `until`.
  bool push_until(T&& value, deadline until, transfer how) const {
    return detail::give_away(value, how, [&] { return push_until(std::as_const(value), until, how); });
  }
  /// Pushes a message without waiting. Returns false when the queue is full or closed. Throws as push().
  bool try_push(const T& value, transfer how = transfer::reference) const {
    return send(
        value, how, [](message_ring& to, const message_view& what) { return to.try_push(what); },
        [](outgoing_message& what) { return what.try_push(); });
  }
  /// Pushes an rvalue, which transfer::move gives away, without waiting.
  bool try_push(T&& value, transfer how) const {
    return detail::give_away(value, how, [&] { return try_push(std::as_const(value), how); });
  }

  /// Takes the first message; waits while there is none. Nothing when the queue is closed and empty.
  /// Unblocked by: a message, close().
  /// Throws what the value's serialize function throws (errc::out_of_memory, too, where the arena has no room for a
  /// value that was pushed by copy: lease() leaves the message in the queue then), errc::corrupted when somebody has
  /// overwritten the message; it is out of the queue then, since nobody could decode it. All calls that push or take
  /// throw errc::corrupted, too, when somebody has overwritten the queue itself, so that it cannot go on.
  [[nodiscard]] std::optional<T> pop() const { return pop_until(deadline::never()); }
  /// Takes the first message; returns nothing also when `wait` has passed first. Throws as pop().
  template <class Rep, class Period>
  [[nodiscard]] std::optional<T> pop_for(std::chrono::duration<Rep, Period> wait) const {
    return pop_until(deadline::after(wait));
  }
  /// Takes the first message; returns nothing also when `until` has passed first.
  [[nodiscard]] std::optional<T> pop_until(deadline until) const {
    ring_position at;
    if (ring().claim(at, until) != queue_result::done) return std::nullopt;
    return take(at);
  }
  /// Takes the first message without waiting; returns nothing when there is none. Throws as pop().
  [[nodiscard]] std::optional<T> try_pop() const {
    ring_position at;
    if (ring().try_claim(at) != queue_result::done) return std::nullopt;
    return take(at);
  }

  /// As pop(), but on approval. Throws as pop(); errc::out_of_memory where there is no descriptor for a hold on each of
  /// the message's blocks (domain_options::max_blocks), so that what somebody keeps of them can stay when it goes back:
  /// pop() needs none. With errc::out_of_memory, also where the arena has no room for what is decoded (a value that was
  /// pushed by copy), the message is where it was, for others, or for later.
  [[nodiscard]] std::optional<lease_type> lease() const { return lease_until(deadline::never()); }
  /// Leases the first message; returns nothing also when `wait` has passed first. Throws as lease().
  template <class Rep, class Period>
  [[nodiscard]] std::optional<lease_type> lease_for(std::chrono::duration<Rep, Period> wait) const {
    return lease_until(deadline::after(wait));
  }
  /// Leases the first message; returns nothing also when `until` has passed first.
  [[nodiscard]] std::optional<lease_type> lease_until(deadline until) const {
    auto& from = ring();
    return lease_type::made_by(ring_, [&](ring_position& at) { return from.claim(at, until); });
  }
  /// Leases the first message without waiting; returns nothing when there is none. Throws as lease().
  [[nodiscard]] std::optional<lease_type> try_lease() const {
    auto& from = ring();
    return lease_type::made_by(ring_, [&](ring_position& at) { return from.try_claim(at); });
  }

  /// Nothing can be pushed any more; what is in the queue is still delivered, also what a lease puts back. Whoever
  /// waits is told. Again: nothing.
  void close() const { ring().close(); }
  /// Returns whether any process has called close(). Messages may still be in the queue.
  [[nodiscard]] bool is_closed() const { return ring().is_closed(); }
  /// How many messages are in it, those on lease included: a hint, old when it is read.
  [[nodiscard]] std::size_t size() const { return ring().size(); }
  /// Returns how many messages the queue has room for, as its constructor was told.
  [[nodiscard]] std::size_t capacity() const { return ring().capacity(); }

  /// Sends the queue itself along, not its messages. Throws errc::not_serializable where no shared memory can go.
  void save(output_archive& out) const {
    const bool is_there = ring_ != nullptr;
    out(is_there);
    if (!is_there) return;
    if (!out.attaches()) detail::throw_queue_cannot_go();
    out.attach(ring_->block());
  }
  /// Throws errc::corrupted when what came is no queue of this kind, errc::invalid_argument when it lies in a domain
  /// that is not the program's.
  void load(input_archive& in) {
    bool is_there = false;
    in(is_there);
    ring_ = is_there ? message_ring::attach(Kind, in.take_attachment()) : nullptr;
  }

private:
  [[nodiscard]] message_ring& ring() const {
    if (ring_ == nullptr) detail::throw_no_queue();
    ring_->require_here();
    return *ring_;
  }

  // What is nothing but its bytes goes straight into the cell.
  template <class Direct, class Encoded>
  bool send(const T& value, transfer how, Direct direct, Encoded encoded) const {
    auto& to = ring();
    if constexpr (codec<T>::is_fixed) {
      if (sizeof(T) <= to.inline_bytes()) {
        const message_view what{.form = {.frame_bytes = sizeof(T)}, .bytes = std::as_bytes(std::span(&value, 1))};
        return direct(to, what) == queue_result::done;
      }
    }
    outgoing_message message(to);
    const bool attaches = how != transfer::copy;
    const auto extent = codec<T>::measure(attaches, value);
    codec<T>::encode_with(message.make_room(extent.bytes, extent.attachments), attaches ? &message : nullptr, value);
    message.finish();
    return encoded(message) == queue_result::done;
  }

  [[nodiscard]] T take(ring_position at) const {
    if constexpr (codec<T>::is_fixed) {  // and so is the way out
      const auto form = ring_->form_at(at);
      const auto room = ring_->room_at(at);
      if (form.is_plain() && form.frame_bytes == codec<T>::fixed_bytes && room.size() >= form.frame_bytes) {
        auto value = codec<T>::decode_value(room);
        ring_->free_cell(at);
        return value;
      }
    }
    incoming_message message(*ring_, at);
    auto value = detail::decode_message<T>(message);
    message.accept();
    return value;
  }

  std::shared_ptr<message_ring> ring_;
};

}  // namespace muster
