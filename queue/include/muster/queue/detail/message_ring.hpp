// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/memory/detail/participant.hpp>
#include <muster/memory/detail/shared_block.hpp>
#include <muster/queue/detail/ring_memory.hpp>
#include <muster/queue/queue_options.hpp>

namespace muster {

class arena;
class domain;

/// A message as it goes into a cell: what it consists of, the bytes for the cell, and the holds that go with it, which
/// are in this process's name until then.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
/// Lifetime: borrows bytes and names.
struct message_view {
  message_form form;
  std::span<const std::byte> bytes;
  std::span<const std::uint64_t> holds = {};
};

/// How an attempt ended, or a wait.
enum class queue_result : std::uint8_t {
  done,
  not_now,     ///< full or empty, for as long as was waited
  closed,      ///< and, for consumers, empty
  interrupted  ///< as claim() was told
};

/// A bounded queue of messages that are still encoded, as one process sees it.
///
/// It works as follows. Cells of one size lie in a ring in shared memory, each with a word that says whose it is
/// (message_protocol.hpp): a producer claims the next empty cell, writes, and makes it ready; a consumer claims the
/// first ready one, reads, and makes it empty. Who finds nothing to do looks again for a while, and then sleeps
/// (wait_protocol.hpp). The host's keeper repairs what a dead participant had (docs/formats/queue.md).
///
/// Thread safety: distinct objects: safe. Shared objects: safe; of kind p2p for one producer and one consumer at a
/// time, who consumes until the cell that it has claimed is free or put back. Process safety: the same, and a
/// participant may be killed at any instruction. Visibility: what the producer wrote before a message became ready is
/// visible to whoever claims it. Cost: two read-modify-write operations on the cell and one on head or tail for each
/// side; a system call when somebody sleeps.
class message_ring {
public:
  /// Makes a queue in the program's domain. Throws errc::invalid_argument in a worker and for what ring_shape::of()
  /// refuses, errc::out_of_memory.
  [[nodiscard]] static std::shared_ptr<message_ring> make(queue_kind kind, std::size_t capacity,
                                                          const queue_options& options);
  /// The queue in a block that was received. Throws errc::corrupted when it is none of this kind,
  /// errc::invalid_argument when it lies in a domain that is not the program's.
  [[nodiscard]] static std::shared_ptr<message_ring> attach(queue_kind kind, shared_block memory);

  message_ring(const message_ring&) = delete;
  message_ring& operator=(const message_ring&) = delete;
  ~message_ring();

  /// Requires: what.bytes.size() <= inline_bytes(). After `done` the message's holds are the queue's.
  /// This and the next three throw errc::corrupted, with the place and what it says, when the queue cannot go on
  /// because somebody has overwritten it; whoever sleeps in them is woken then, and told too.
  [[nodiscard]] queue_result try_push(const message_view& what);
  /// As try_push, but waits. Unblocked by: room, close(), `until`.
  [[nodiscard]] queue_result push(const message_view& what, deadline until);
  /// The same; `interrupted` when there is no room and `is_over(of)`, as claim() below.
  [[nodiscard]] queue_result push(const message_view& what, deadline until, bool (*is_over)(void* of), void* of);

  /// Claims the first message. The caller reads it, and then releases it in one of two ways.
  [[nodiscard]] queue_result try_claim(ring_position& at);
  /// As try_claim, but waits. Unblocked by: a message, close(), `until`.
  [[nodiscard]] queue_result claim(ring_position& at, deadline until);
  /// The same; `interrupted` when there is no message and `is_over(of)`, which is asked again and again, also whenever
  /// a participant has died. Its caller sees to it that a message comes when the answer has changed otherwise.
  [[nodiscard]] queue_result claim(ring_position& at, deadline until, bool (*is_over)(void* of), void* of);
  /// It has been taken: the cell is free.
  void free_cell(ring_position at) noexcept;
  /// It has not: it is where it was. Others have not overtaken it, except those who were given later ones meanwhile.
  void put_back(ring_position at) noexcept;

  /// What lies in a cell that this process has claimed.
  [[nodiscard]] message_form form_at(ring_position at) const noexcept { return ring_.form(at.index()); }
  [[nodiscard]] std::span<const std::byte> room_at(ring_position at) const noexcept { return ring_.room(at.index()); }

  /// Whoever waits here asks its `is_over` again.
  void rouse() noexcept;
  void close() noexcept;
  [[nodiscard]] bool is_closed() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return ring_.capacity(); }
  [[nodiscard]] std::size_t inline_bytes() const noexcept { return ring_.shape().inline_bytes(); }

  /// Whether this is the process that has it, and not a forked child.
  [[nodiscard]] bool is_here() const noexcept { return made_in_.is_here(); }
  /// Throws errc::forked in a forked child.
  void require_here() const { made_in_.require_here("a queue"); }

  [[nodiscard]] const shared_block& block() const noexcept { return block_; }
  [[nodiscard]] arena& memory() const noexcept;

private:
  message_ring(std::shared_ptr<domain> where, shared_block memory, const ring_memory& ring) noexcept;

  // One side of the queue, as those see it that wait there: the word on which they sleep, where they run, and where the
  // other side does.
  struct side {
    ring_memory::wait_word& word;
    place_word& own;
    const place_word& other;
  };

  template <class Attempt>
  queue_result wait_for(side where, deadline until, Attempt attempt) const;
  void tell(place_word& own, ring_position at) const noexcept;
  void wake_one(ring_memory::wait_word& word) const noexcept;
  void wake_all(ring_memory::wait_word& word) const noexcept;
  void require_sound(std::optional<ring_position> damaged) const;
  void wake_next_consumer() noexcept;
  void wake_next_producer() noexcept;
  void write(ring_position at, const message_view& what) noexcept;
  void fetch_next(ring_position at) const noexcept;

  const process_mark made_in_;
  const std::shared_ptr<domain> domain_;
  const participant_id self_;
  shared_block block_;
  const ring_memory ring_;
};

}  // namespace muster
