// SPDX-License-Identifier: BSL-1.0
#pragma once

// Processes that compute together: collectives and messages over shared memory.
//
//     muster::group group(ticket, rank);
//     group.all_reduce(gradients);                                  // the sum, on all ranks, in place
//     auto parts = group.all_gather(mine);                          // all ranks' rows
//     auto sent = group.isend(block, (rank + 1) % group.size(), 7);
//     group.recv(other, muster::any_source, 7);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <muster/collectives/group_error.hpp>
#include <muster/collectives/group_options.hpp>
#include <muster/collectives/group_ticket.hpp>
#include <muster/collectives/reduction.hpp>
#include <muster/collectives/work.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

namespace detail {

/// How an object of a group is encoded.
template <class T>
struct group_object;

template <class T>
consteval void require_group_object() {
  static_assert(
      requires { sizeof(group_object<T>); },
      "muster: objects of a group need #include <muster/group.hpp>, or "
      "<muster/collectives/group_objects.hpp>");
}

}  // namespace detail

/// To receive from whichever rank sends first.
inline constexpr std::size_t any_source = SIZE_MAX;

/// One rank's membership in a group: an ordered set of processes (or threads) that make the same calls in the same
/// order, and send one another messages.
///
/// **Calls.** Every rank must make the same collectives in the same order. Before anything is read or written all ranks
/// have told one another what they call; if that does not fit together (operation, type, shape, root, order), all of
/// them throw errc::invalid_argument with who called what, nothing has been done, and the group goes on. A call that
/// only one rank gets wrong is refused by all ranks in the same way. Each call is a barrier: it returns when this rank
/// has its result, and the tensors of all ranks may be changed again.
///
/// **Tensors.** Of any type and shape, strided or not. Those in the group's domain (memory::shared, contiguous) are
/// read and written by the other ranks where they are; others are copied there and back. Elements are combined in the
/// order of ranks, so results are the same bits on all ranks and in every run, whatever floating-point state (rounding,
/// flushing, traps: float_state.hpp) a rank's thread has; calls leave that state as it was, and a function of the
/// program's own runs in it. `f16` and `bf16` are summed in f32. What a collective makes lies where `in` does; what the
/// root of a scatter without `out` gives comes to the host.
///
/// **Overlap.** The `in` and `out` of a rank are one tensor, or have no byte in common; the even and the odd columns of
/// a matrix have none. Three more forms are in place: the `in` of all_gather, and of gather at the root, may be this
/// rank's rows of `out`; the `out` of reduce_scatter, and of scatter at the root, may be this rank's rows of `in`; both
/// tensors of all_to_all may begin with the same row. No two elements of a result lie in one place. All ranks refuse
/// any other call (errc::invalid_argument, with both ranges), whatever its size. The result of a rank has no byte in
/// common with a tensor of another rank: all ranks refuse that too, with both ranges, if both tensors are long,
/// contiguous and in the group's domain. Elsewhere nobody looks, and the results are undefined. Where ranks are
/// threads, tensors of memory::local are copied before any result is written; so only two results in one place are
/// undefined.
///
/// **Tensors on devices.** In programs that are linked with muster::nccl, devices exchange and combine elements
/// directly where all ranks' tensors of a call lie on devices, a device of its own for each rank, and the library of
/// NCCL is there for all of them; way_of_devices() says whether it is so, or why not. Otherwise, and always for
/// messages, for bitwise and custom reductions, averages of integers, and those of f64 and c128 over a number of ranks
/// that is no power of 2, they go by way of the host, with the same results. Floating-point numbers are combined in the
/// transport's order and in their own type, a NaN may be lost in min and max, but all ranks get the same bits; with
/// group_options::is_ordered_on_devices, to the bits of the host. A call follows what the device's compute stream was
/// given before it, and returns when the device has done it, as on the host; asynchronous ones go beside what the
/// stream is given meanwhile. Where two groups share ranks, all ranks must begin such calls of both in the same order,
/// and wait for one of the one group before they begin one of the other: each group gives its calls to the device by
/// itself, and a device that has no room for both at once may wait in one while another device waits in the other,
/// until the timeout.
///
/// **What can go wrong.** A wait of a collective ends with its timeout (group_options, call_options), when a member
/// dies (peer_lost, some milliseconds later), when one has left that is waited for, or by abort(). Then the group is
/// broken: all calls of all ranks throw at once (group_error), and shrink() makes a group of those who are left.
/// Results of a call that threw are undefined. A rank that is stopped, and that shrink() leaves out, may still write
/// into the tensors of the call that it was stopped in when it continues: after errc::timed_out, go on with others.
/// A call that some ranks cannot do their part of (an object that cannot be encoded, a reduction that throws) breaks
/// nothing: these ranks throw what they failed with, all others member_failed, which names all of these ranks.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe, but abort() and handles of work.
/// Process safety: any member may be killed at any instruction; the others throw peer_lost, and no memory is lost. In a
/// forked child calls throw errc::forked, those of handles of work too, and destructors change nothing.
/// Visibility: what a rank did before a call is visible to all others after it; what it did before a send, to who
/// received it.
/// Lifetime: destroying it leaves the group, after the asynchronous collectives begun have ended; in a callback of one
/// of them it returns at once, and the group's thread leaves when they have. What this rank has sent until then is
/// received all the same, also when its process has ended since: sends that returned, and those begun that the ring has
/// room for, 32 that the receiver has not looked at. The receiver gets what their tensors held then; a tensor that has
/// another owner is copied. The handles of these sends end well, the others with errc::cancelled. Any other wait for a
/// rank that has left throws peer_lost.
/// Cost: collectives of short tensors (group_options::inline_bytes) take one exchange of a cache line with each other
/// rank, longer ones two and the copies; docs/design/collectives.md has steps and bytes.
/// Source: the operations are those of MPI and PyTorch's c10d; the ordered in-place reduction by slice owners is that
/// of DeepSpeed's and NCCL's symmetric kernels.
class group {
public:
  /// Joins as `rank`. Returns at once: the first call waits for the others.
  /// Throws errc::invalid_argument for a rank out of range, one that somebody is already, and an empty ticket.
  group(const group_ticket& ticket, std::size_t rank);
  /// Takes over the membership. The other object may then only be assigned to or destroyed.
  group(group&&) noexcept;
  group& operator=(group&&) noexcept;
  ~group();

  /// Returns which rank this is, from 0 to size() - 1.
  [[nodiscard]] std::size_t rank() const noexcept;
  /// Returns how many ranks the group has, also those that have not joined yet, have left or died.
  [[nodiscard]] std::size_t size() const noexcept;
  /// Every rank, with its process; of those that have not joined yet the pid is 0.
  [[nodiscard]] std::vector<group_member> members() const;
  /// Whether nothing has broken it. Costs one load.
  [[nodiscard]] bool is_whole() const noexcept;

  /// Returns what this rank's collectives have cost since it joined.
  [[nodiscard]] group_traffic traffic() const noexcept;
  /// How collectives over tensors on devices go, as of the last one.
  [[nodiscard]] device_way way_of_devices() const;

  // ---- groups of groups

  /// Called by all ranks: those with the same color become a group, ordered by key and, where that is equal, by rank
  /// here. Nothing for a negative color. Throws as a collective.
  [[nodiscard]] std::optional<group> split(int color, int key = 0, const call_options& how = {});
  /// Called by those ranks only, all with the same list, in which rank i is to be rank i of the new group. Subsets of
  /// the same ranks may be made and destroyed any number of times. Throws errc::invalid_argument for an empty list, one
  /// that this rank is not in, ranks twice or out of range; group_error when the others do not come.
  ///@{
  [[nodiscard]] group subset(std::span<const std::size_t> ranks, const call_options& how = {});
  [[nodiscard]] group subset(std::initializer_list<std::size_t> ranks, const call_options& how = {}) {
    return subset(std::span(ranks.begin(), ranks.size()), how);
  }
  ///@}
  /// Called by all that are left of a broken group: makes one of them, in the same order. Whoever has not called it
  /// when the timeout has passed is left out. Throws errc::timed_out for whom the others have left out,
  /// errc::invalid_argument while the group is whole and nobody has left.
  [[nodiscard]] group shrink(const call_options& how = {});
  /// Ends all calls of all ranks with errc::cancelled and this reason. Thread safety: safe.
  void abort(const std::string& reason) noexcept;

  // ---- collectives

  /// Returns when all ranks have called it.
  void barrier(const call_options& how = {});

  /// The root's elements, on all ranks.
  void broadcast(const tensor& what, std::size_t root, const call_options& how = {});

  /// All ranks' elements combined, on all ranks; in place, or into `out`.
  ///@{
  void all_reduce(const tensor& what, const reduction& with = reduction_op::sum, const call_options& how = {}) {
    all_reduce(what, what, with, how);
  }
  void all_reduce(const tensor& in, const tensor& out, const reduction& with = reduction_op::sum,
                  const call_options& how = {});
  ///@}
  /// Several tensors in one call, in place: many short ones cost little more than one. All of the same type; as many,
  /// of the same shapes, on all ranks. They do not overlap; a tensor that all ranks list several times, in the same
  /// places, is combined once.
  void all_reduce(std::span<const tensor> what, const reduction& with = reduction_op::sum,
                  const call_options& how = {});

  /// All ranks' elements combined, at the root; in place (the other ranks' tensors stay as they are), or into `out`,
  /// which only the root gives.
  ///@{
  void reduce(const tensor& what, std::size_t root, const reduction& with = reduction_op::sum,
              const call_options& how = {});
  void reduce(const tensor& in, const tensor& out, std::size_t root, const reduction& with = reduction_op::sum,
              const call_options& how = {});
  ///@}

  /// All ranks' rows (of the first dimension; a 0-dimensional tensor is a row), in the order of ranks, at the root.
  /// Ranks may have different numbers of rows. Returns an empty tensor elsewhere. Or into `out`, which counts at the
  /// root only.
  ///@{
  [[nodiscard]] tensor gather(const tensor& in, std::size_t root, const call_options& how = {});
  void gather(const tensor& in, const tensor& out, std::size_t root, const call_options& how = {});
  ///@}
  /// The same, on all ranks. `in` may be this rank's rows of `out`.
  ///@{
  [[nodiscard]] tensor all_gather(const tensor& in, const call_options& how = {});
  void all_gather(const tensor& in, const tensor& out, const call_options& how = {});
  ///@}

  /// Rank r gets rows [floor(r·n/N), floor((r+1)·n/N)) of the root's n; only the root gives `in`.
  [[nodiscard]] tensor scatter(const tensor& in, std::size_t root, const call_options& how = {});
  /// As many rows as `out` of each rank has, in the order of ranks. `in` counts at the root only.
  void scatter(const tensor& in, const tensor& out, std::size_t root, const call_options& how = {});

  /// All ranks' elements combined; each rank gets as many rows of that as its `out` has, in the order of ranks.
  void reduce_scatter(const tensor& in, const tensor& out, const reduction& with = reduction_op::sum,
                      const call_options& how = {});

  /// Sends as many rows to each rank as `rows` says, in order; returns what all sent here, in the order of ranks.
  [[nodiscard]] tensor all_to_all(const tensor& in, std::span<const std::size_t> rows, const call_options& how = {});
  /// Equal parts: the number of rows must be a multiple of size(). In place a rank may receive more rows than it
  /// sends, or fewer; what is not short is copied first.
  void all_to_all(const tensor& in, const tensor& out, const call_options& how = {});

  // ---- the same, while this rank goes on: done by a thread of the group, in the order of the calls

  /// Begins the call of that name, and returns a handle of it. Calls are made one by one, after those that were begun
  /// before. work::result() gives the tensor that the call returns or writes: `what`, `out`, or a new one; an empty one
  /// for a barrier. Throws errc::invalid_argument while another thread of this rank makes a call of the group, and
  /// EAGAIN when the group has no thread yet and none can be had; nothing has begun then. What the call itself throws,
  /// work::wait() throws.
  ///@{
  [[nodiscard]] work barrier_async(const call_options& how = {});
  [[nodiscard]] work broadcast_async(const tensor& what, std::size_t root, const call_options& how = {});
  [[nodiscard]] work all_reduce_async(const tensor& what, const reduction& with = reduction_op::sum,
                                      const call_options& how = {});
  [[nodiscard]] work reduce_async(const tensor& what, std::size_t root, const reduction& with = reduction_op::sum,
                                  const call_options& how = {});
  [[nodiscard]] work gather_async(const tensor& in, std::size_t root, const call_options& how = {});
  [[nodiscard]] work all_gather_async(const tensor& in, const call_options& how = {});
  [[nodiscard]] work scatter_async(const tensor& in, std::size_t root, const call_options& how = {});
  [[nodiscard]] work reduce_scatter_async(const tensor& in, const tensor& out,
                                          const reduction& with = reduction_op::sum, const call_options& how = {});
  [[nodiscard]] work all_to_all_async(const tensor& in, std::span<const std::size_t> rows,
                                      const call_options& how = {});
  ///@}

  // ---- messages

  /// Begins to send. Messages from one rank to one other with one tag are received in the order in which they were
  /// sent; any number may be under way. Throws errc::invalid_argument for a rank out of range, and, once for each, when
  /// an earlier message to that rank, which had ended here, was refused there because of its type or shape.
  [[nodiscard]] work isend(const tensor& what, std::size_t to, std::uint32_t tag = 0);
  /// Begins to receive from a rank, or any_source; work::source tells which. The sender's tensor must be of the same
  /// type and shape; else both ends throw errc::invalid_argument. Throws errc::invalid_argument, with both ranges, if
  /// the tensor overlaps one that this rank is sending or receiving into; so does isend() for one that it is receiving
  /// into.
  [[nodiscard]] work irecv(const tensor& into, std::size_t from, std::uint32_t tag = 0);
  /// Begins to receive a tensor of whatever type and shape is sent: work::result.
  [[nodiscard]] work irecv(std::size_t from, std::uint32_t tag = 0);

  /// Returns when the tensor may be changed again: at once for up to 384 bytes, else when the receiver has it. Two
  /// ranks that send to one another first and receive then both get on: what came meanwhile is copied. Throws what
  /// isend() and work::wait() do; errc::timed_out, which breaks nothing; where its text says that the message cannot be
  /// withdrawn any more, that is received later all the same, with what the tensor holds by then.
  void send(const tensor& what, std::size_t to, std::uint32_t tag = 0, const call_options& how = {});
  /// Returns the rank that sent it.
  std::size_t recv(const tensor& into, std::size_t from, std::uint32_t tag = 0, const call_options& how = {});
  /// Returns a tensor of whatever type and shape is sent, in memory of its own.
  [[nodiscard]] tensor recv(std::size_t from, std::uint32_t tag = 0, const call_options& how = {});

  // ---- objects: whatever can be an argument of a task (transportable.hpp), by copy; anything else does not compile.
  // With <muster/group.hpp> or <muster/collectives/group_objects.hpp>.

  /// The root's object, on all ranks: elsewhere `what` is assigned to. Requires: T is the same on all ranks.
  template <class T>
  void broadcast_object(T& what, std::size_t root, const call_options& how = {}) {
    const auto bytes = made_or_refused([&] { return rank() == root ? encode(what) : std::vector<std::byte>(); }, how);
    const auto received = broadcast_bytes(bytes, root, how);
    if (rank() != root) what = decode<T>(received);
  }
  /// One of each rank, at the root; nothing elsewhere.
  template <class T>
  [[nodiscard]] std::vector<T> gather_object(const T& what, std::size_t root, const call_options& how = {}) {
    return decode_all<T>(gather_bytes(made_or_refused([&] { return encode(what); }, how), root, how));
  }
  /// One of each rank, in the order of ranks, on all ranks.
  template <class T>
  [[nodiscard]] std::vector<T> all_gather_object(const T& what, const call_options& how = {}) {
    return decode_all<T>(gather_bytes(made_or_refused([&] { return encode(what); }, how), std::nullopt, how));
  }
  /// One for each rank, from the root; `what` counts there only.
  template <class T>
  [[nodiscard]] T scatter_object(const std::vector<T>& what, std::size_t root, const call_options& how = {}) {
    const auto make_parts = [&] {
      std::vector<std::vector<std::byte>> parts;
      if (rank() == root) {
        for (const auto& each : what) parts.push_back(encode(each));
      }
      return parts;
    };
    return decode<T>(scatter_bytes(made_or_refused(make_parts, how), root, how));
  }
  /// Sends an object to one rank, as send() sends a tensor.
  template <class T>
  void send_object(const T& what, std::size_t to, std::uint32_t tag = 0, const call_options& how = {}) {
    send(tensor::from(as_elements(encode(what))), to, tag, how);
  }
  /// Returns an object that send_object() sent from a rank, or any_source. Throws as recv(), and what decoding throws.
  /// Requires: T is what was sent.
  template <class T>
  [[nodiscard]] T recv_object(std::size_t from, std::uint32_t tag = 0, const call_options& how = {}) {
    const auto received = recv(from, tag, how);
    const auto bytes = std::as_bytes(received.template span<std::uint8_t>());
    return decode<T>({bytes.begin(), bytes.end()});
  }

private:
  struct impl;
  explicit group(std::shared_ptr<impl> self) noexcept;
  /// Throws errc::forked in a forked child.
  [[nodiscard]] impl& joined() const;
  void leave() noexcept;

  // Before a call: the others, who make it, are told why this rank cannot.
  template <class Make>
  auto made_or_refused(Make make, const call_options& how) -> decltype(make()) {
    try {
      return make();
    } catch (...) {
      refuse(how);
    }
  }
  [[noreturn]] void refuse(const call_options& how);

  template <class T>
  static std::vector<std::byte> encode(const T& what) {
    detail::require_group_object<T>();
    return detail::group_object<T>::encode(what);
  }
  template <class T>
  static T decode(const std::vector<std::byte>& bytes) {
    detail::require_group_object<T>();
    return detail::group_object<T>::decode(bytes);
  }
  template <class T>
  static std::vector<T> decode_all(const std::vector<std::vector<std::byte>>& parts) {
    std::vector<T> values;
    for (const auto& each : parts) values.push_back(decode<T>(each));
    return values;
  }
  static std::vector<std::uint8_t> as_elements(const std::vector<std::byte>& bytes);

  [[nodiscard]] std::vector<std::byte> broadcast_bytes(std::span<const std::byte> bytes, std::size_t root,
                                                       const call_options& how);
  [[nodiscard]] std::vector<std::vector<std::byte>> gather_bytes(const std::vector<std::byte>& own,
                                                                 std::optional<std::size_t> root,
                                                                 const call_options& how);
  [[nodiscard]] std::vector<std::byte> scatter_bytes(const std::vector<std::vector<std::byte>>& parts, std::size_t root,
                                                     const call_options& how);

  std::shared_ptr<impl> self_;
};

}  // namespace muster
