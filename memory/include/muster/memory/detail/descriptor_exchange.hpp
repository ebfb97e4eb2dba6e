// SPDX-License-Identifier: BSL-1.0
#pragma once

// Participants of a domain hand file descriptors to one another, by way of the domain's host, who keeps them.
//
//     auto& exchange = domain::of_program()->descriptors();       // a worker
//     const auto name = exchange.make_name();
//     exchange.deposit(name, export_memory(), header);             // header: a shared_block; now tell others the name
//
//     if (auto found = exchange.fetch(name, until)) map(*found);   // another worker, or the program itself

#include <atomic>
#include <cstdint>
#include <optional>

#include <muster/base/clock.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/memory/detail/descriptor_name.hpp>
#include <muster/memory/detail/shared_block.hpp>

namespace muster {

/// One process's way to the descriptors of its domain; domain::descriptors() is it.
///
/// A descriptor that was deposited is there for whoever has its name until its depositor withdraws it. When its
/// depositor dies first, it stays for as long as somebody holds its *anchor*, a block of shared memory that goes with
/// it: whoever may still fetch it, or uses what it leads to, keeps a handle of the anchor.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: belongs to its process. In a forked child deposit() and fetch() throw errc::forked, and the others
/// do nothing. A process that dies at whatever instruction leaves neither descriptors, but as said above, nor requests.
/// Lifetime: as the domain.
/// Cost: in the host, a lock. Elsewhere deposit() and fetch() are a message to the host's supervisor and its answer,
/// withdraw() and let_go() are a message.
class descriptor_exchange {
public:
  /// Beyond every count of who is alive, also where counts are compared by the sign of their difference.
  static constexpr std::uint64_t dead_count = std::uint64_t{1} << 62U;

  descriptor_exchange(const descriptor_exchange&) = delete;
  descriptor_exchange& operator=(const descriptor_exchange&) = delete;
  virtual ~descriptor_exchange() = default;

  /// A name for a descriptor that this process will deposit. Others may be told it, and fetch, before that.
  /// Throws errc::overflow when there are no more (2^28).
  [[nodiscard]] descriptor_name make_name();

  /// Keeps `what` under `name` for whoever fetches it, until withdraw(); it is there for others when this returns. The
  /// descriptor itself is this process's no longer, what it leads to may be.
  ///
  /// `anchor`: what keeps it when this process has died; with an empty handle it goes then. Several descriptors may
  /// have one anchor. The host holds it too until the descriptor is gone. Its first 8 bytes are for a count that others
  /// wait for, or unused: when this process has died the host adds dead_count there.
  ///
  /// Throws errc::invalid_argument for a name that is not this process's, or was deposited before, for no descriptor,
  /// and for an anchor of another domain; errc::out_of_memory when the host keeps as many as it may (4096 of each
  /// participant, and together half of RLIMIT_NOFILE), or has no descriptors or blocks left; EMFILE and ETOOMANYREFS
  /// likewise here; errc::timed_out and ECONNRESET when the host does not answer, or is gone. After an error `what` is
  /// closed; under the same name another may be deposited, or it is withdrawn, for those who wait for it.
  virtual void deposit(descriptor_name name, unique_fd what, const shared_block& anchor) = 0;

  /// A descriptor for what was deposited under that name, to be closed by the caller. Waits for a deposit that may
  /// still come. Nothing when there is none and none will be: it was withdrawn, or its depositor is dead. Unblocked by:
  /// deposit(), withdraw(), the depositor's death; `until`, and elsewhere than in the host its word how it stands then,
  /// for which nobody waits longer than 10 s: a deadline that has passed already is a look whether it is there. Throws
  /// errc::timed_out, after which nothing is left of the request; EMFILE when this process has no descriptors left;
  /// errc::out_of_memory when the host cannot send it now, or 1024 threads of this process are waiting already;
  /// ECONNRESET when the host is gone.
  [[nodiscard]] virtual std::optional<unique_fd> fetch(descriptor_name name, deadline until) = 0;

  /// Takes back what this process has deposited, or says that it will not be; who waits for it gets nothing. Who has
  /// fetched it keeps what he has.
  virtual void withdraw(descriptor_name name) noexcept = 0;

  /// Says that this process has just let go of the anchor of what another one has deposited. If that one is dead, and
  /// nobody else holds the anchor, the descriptor is closed; without this it would be found at the next death.
  virtual void let_go(descriptor_name name) noexcept = 0;

protected:
  descriptor_exchange(participant_id self, std::uint32_t incarnation) noexcept
      : self_(self), incarnation_(incarnation) {}

  /// Throws errc::forked in a forked child, errc::invalid_argument for what nobody may deposit.
  void require_depositable(descriptor_name name, const unique_fd& what) const;
  void require_here() const { made_in_.require_here("the exchange of descriptors of a domain"); }
  [[nodiscard]] bool is_here() const noexcept { return made_in_.is_here(); }
  [[nodiscard]] participant_id self() const noexcept { return self_; }

private:
  const process_mark made_in_;
  const participant_id self_;
  const std::uint32_t incarnation_;
  std::atomic<std::uint32_t> made_ = 0;  // names so far; each is one's who has raised it
};

}  // namespace muster
