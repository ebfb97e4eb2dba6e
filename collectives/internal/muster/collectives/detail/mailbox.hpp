// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/collectives/detail/outbox.hpp>
#include <muster/collectives/detail/rank_end.hpp>
#include <muster/collectives/detail/recycled_memory.hpp>
#include <muster/collectives/detail/transfer.hpp>

namespace muster::detail {

/// The messages of one rank. Every pair of ranks has a ring in shared memory in each direction, made when it is first
/// used. A short message is written into the ring, and then sent. Of a long one the ring says where it lies; the
/// receiver copies it from there to where it is wanted and answers, and then it is sent. Whatever comes is taken out of
/// the rings at once and waits in this process until it is asked for, so tags may be asked for in any order.
///
/// A rank that waits until its own long message is taken also copies what others have sent to it, if need be into
/// memory of its own: so two ranks that send to one another first and receive later do not wait for ever. One that
/// waits for anything else copies some of what a sender has told of that can tell of nothing more before it is
/// answered. A rank that only tests copies as well, after many tests in vain.
///
/// A rank that leaves hands over what it has told of and others have not received: rings that nobody has taken over go
/// with the group's memory then, and long messages with their ring.
///
/// Thread safety: safe.
/// Process safety: as rank_end.
/// Cost: it allocates nothing once as many have been under way at once, up to 1024, but for tensors that it makes: for
/// receives without one, and in place of those that others cannot reach (docs/design/collectives.md).
class mailbox : public std::enable_shared_from_this<mailbox> {
public:
  explicit mailbox(std::shared_ptr<rank_end> end);
  ~mailbox();
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  [[nodiscard]] std::shared_ptr<transfer> send(const tensor& what, std::size_t to, std::uint64_t tag)
      MUSTER_EXCLUDES(mutex_);
  /// `into`: nullptr for a tensor that is made for what comes.
  [[nodiscard]] std::shared_ptr<transfer> receive(const tensor* into, std::size_t from, std::uint64_t tag)
      MUSTER_EXCLUDES(mutex_);

  /// The same for a short message, where nothing is in its way: it is sent, or here, and nothing is left of it. False:
  /// nothing was done; it is to be sent or received as others are. Cost: no allocation, one cache line there.
  [[nodiscard]] bool send_now(const tensor& what, std::size_t to, std::uint64_t tag) MUSTER_EXCLUDES(mutex_);
  /// Looks for it some microseconds long.
  [[nodiscard]] bool receive_soon(const tensor& into, std::size_t from, std::uint64_t tag) MUSTER_EXCLUDES(mutex_);

  /// Brings everything forward that can be; true when something has changed. Calls what is to be called then.
  bool advance() MUSTER_EXCLUDES(mutex_);
  /// Whether it has ended; ends it where wait() would throw.
  bool test(transfer& what) MUSTER_EXCLUDES(mutex_);
  bool wait(transfer& what, deadline until) MUSTER_EXCLUDES(mutex_);
  /// Also where some of them are collectives of this rank.
  bool wait_any(std::span<work_state* const> all, deadline until);
  bool cancel(transfer& what) MUSTER_EXCLUDES(mutex_);
  void then(transfer& what, std::function<void(std::exception_ptr)> callback) MUSTER_EXCLUDES(mutex_);
  /// Ends all that has not ended: the rank leaves. What its receivers know of is handed over to them, as sent; the rest
  /// is cancelled. Waits for a receiver that is copying a message whose tensor somebody else has, too.
  void close() MUSTER_EXCLUDES(mutex_);
  /// Lets go of rings that nobody has taken over, or that nobody will. After the rank has left: either who sends to it
  /// sees that when he leaves, or his ring is seen here.
  void release_rings() noexcept MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] rank_end& end() noexcept { return *end_; }

private:
  // A message that has come. Its elements are in one of three places.
  struct arrival {
    std::uint64_t tag = 0;
    dtype type = dtype::u8;
    tensor_shape shape;
    std::uint64_t order = 0;              // among all arrivals
    const std::byte* elements = nullptr;  // of a short one
    std::optional<std::size_t> ack = {};  // of a long one that lies in the sender's memory: the answer
    std::uint64_t position = 0;           // in the answer
    std::uint64_t name = 0;
    std::uint64_t offset = 0;
    tensor copy;                                              // of a long one that was taken from there
    std::array<std::byte, message_entry::inline_bytes> room;  // of a short one that nobody has asked for yet
  };
  using arrival_list = std::list<arrival>;
  struct incoming {
    shared_block block;
    outbox ring;
    std::uint64_t position = 0;
    std::uint64_t told = 0;      // of that the sender knows
    arrival_list waiting;        // that nobody has asked for yet
    std::size_t unanswered = 0;  // of those
  };
  struct outgoing {
    shared_block block;
    std::uint64_t hold = 0;  // the receiver's, until it takes it over
    outbox ring;
    std::uint64_t position = 0;
    std::uint64_t taken = 0;  // as far as it was told
    transfer_queue queued;    // no room yet
    transfer_queue unanswered;
    std::vector<std::size_t> free_acks;
    std::uint64_t complaints = 0;  // that were told here
  };

  void require_peer(std::size_t peer) const;
  // Memory that messages under way read or write: mailbox_overlap.cpp.
  void keep_from_receives(transfer& sent) MUSTER_REQUIRES(mutex_);
  void keep_from_transfers(const transfer& received) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_being_sent(const tensor& what) MUSTER_REQUIRES(mutex_);
  template <class Use>
  void for_each_send(Use use) MUSTER_REQUIRES(mutex_);
  void require_no_complaint(std::size_t to) MUSTER_REQUIRES(mutex_);
  void stage(transfer& what);
  void open(std::size_t to) MUSTER_REQUIRES(mutex_);
  void take_back(std::size_t to) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] static bool has_room(outgoing& out);
  message_entry& begin_entry(outgoing& out, const tensor& what, std::uint64_t tag, bool is_long)
      MUSTER_REQUIRES(mutex_);
  void end_entry(outgoing& out, std::size_t to, message_entry& entry) MUSTER_REQUIRES(mutex_);
  bool try_push(outgoing& out, std::size_t to, transfer& what) MUSTER_REQUIRES(mutex_);
  bool push_queued(std::size_t to, transfer_queue& ended) MUSTER_REQUIRES(mutex_);
  bool look_at_answers(std::size_t to, transfer_queue& ended) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] static std::uint64_t answer_to(const outgoing& out, const transfer& sent) noexcept;
  static void end_answered(std::size_t to, outgoing& out, std::shared_ptr<transfer> sent, transfer_queue& ended);
  bool look_at_ring(std::size_t from, transfer_queue& ended) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::shared_ptr<transfer> make(transfer::direction where, std::size_t peer, std::uint64_t tag,
                                               const tensor* what);
  [[nodiscard]] shared_block take_link(std::size_t from) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool attach(std::size_t from) MUSTER_REQUIRES(mutex_);
  enum class find : std::uint8_t { nothing, taken, another };
  [[nodiscard]] find take_short(const tensor& into, std::size_t from, std::uint64_t tag) MUSTER_REQUIRES(mutex_);
  void pass_entry(std::size_t from) MUSTER_REQUIRES(mutex_);
  void take(std::size_t from, const message_entry& entry, transfer_queue& ended) MUSTER_REQUIRES(mutex_);
  bool meet_arrival(const std::shared_ptr<transfer>& what, transfer_queue& ended) MUSTER_REQUIRES(mutex_);
  // One, used or not.
  [[nodiscard]] arrival_list spare_arrival() MUSTER_REQUIRES(mutex_);
  [[nodiscard]] tensor spare_copy(dtype type, const tensor_shape& shape) MUSTER_REQUIRES(mutex_);
  void put_back(arrival_list used) MUSTER_REQUIRES(mutex_);
  void put_back(tensor used) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] static bool read(const message_entry& entry, std::uint64_t position, arrival& message);
  void deliver(std::size_t from, arrival& message, std::shared_ptr<transfer> to, transfer_queue& ended)
      MUSTER_REQUIRES(mutex_);
  void require_fit(std::size_t from, arrival& message, const tensor& into) MUSTER_REQUIRES(mutex_);
  void fill(std::size_t from, arrival& message, const tensor& into) MUSTER_REQUIRES(mutex_);
  void fetch(std::size_t from, arrival& message, const tensor& into) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] const std::byte* find_elements(std::size_t from, const arrival& message, std::size_t bytes)
      MUSTER_REQUIRES(mutex_);
  void drop_handover(outbox::handover& which) noexcept;
  void answer(std::size_t from, arrival& message, bool refused) MUSTER_REQUIRES(mutex_);
  // `position`: of the message, in its answer.
  void complain(std::size_t from, std::uint64_t position, std::string_view why) noexcept MUSTER_REQUIRES(mutex_);
  void absorb() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool absorb(std::size_t from, arrival& what) MUSTER_REQUIRES(mutex_);
  void absorb_newest(std::size_t from) MUSTER_REQUIRES(mutex_);
  void relieve_senders() MUSTER_EXCLUDES(mutex_);
  void copy_for_who_tests(transfer& what) MUSTER_EXCLUDES(mutex_);
  void await_loss(const transfer& what);
  void give_up(transfer& what, std::exception_ptr failure) MUSTER_EXCLUDES(mutex_);
  static void end(std::shared_ptr<transfer> which, std::exception_ptr failure, transfer_queue& ended);
  static void end_all(transfer_queue& which, const std::exception_ptr& failure, transfer_queue& ended);
  [[nodiscard]] bool is_gone(std::size_t rank) const noexcept;
  void leave_to(std::size_t to, transfer_queue& ended) MUSTER_REQUIRES(mutex_);
  void hand_over_ring(std::size_t to) noexcept MUSTER_REQUIRES(mutex_);
  void hand_over(std::size_t to, std::shared_ptr<transfer> sent, transfer_queue& still_read, transfer_queue& ended)
      MUSTER_REQUIRES(mutex_);
  void await_readers() MUSTER_EXCLUDES(mutex_);
  void end_those_read(std::size_t to, bool is_late, transfer_queue& ended) MUSTER_REQUIRES(mutex_);
  bool advance_all(transfer_queue& ended) MUSTER_REQUIRES(mutex_);
  void call_back(transfer_queue& ended);

  const std::shared_ptr<rank_end> end_;
  const std::shared_ptr<recycled_memory> transfers_ = std::make_shared<recycled_memory>();
  mutex mutex_;
  std::vector<incoming> incoming_ MUSTER_GUARDED_BY(mutex_);
  std::vector<outgoing> outgoing_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::size_t> receivers_ MUSTER_GUARDED_BY(mutex_);  // to whom something was sent
  transfer_queue posted_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t arrivals_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
  // Kept for what comes next.
  arrival_list spare_arrivals_ MUSTER_GUARDED_BY(mutex_);
  std::vector<tensor> spare_copies_ MUSTER_GUARDED_BY(mutex_);  // oldest first
  std::size_t spare_bytes_ MUSTER_GUARDED_BY(mutex_) = 0;       // of these copies
  shared_block there_ MUSTER_GUARDED_BY(mutex_);                // a handle of what is read in a sender's memory
};

}  // namespace muster::detail
