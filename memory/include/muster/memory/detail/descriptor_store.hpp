// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/memory/detail/arena.hpp>
#include <muster/memory/detail/descriptor_exchange.hpp>
#include <muster/memory/detail/participant.hpp>
#include <muster/memory/detail/recovery.hpp>

namespace muster {

/// The descriptors of a domain, in its host: what deposit() of any participant puts them into.
///
/// Who answers for participants elsewhere asks by look_up(), which never waits, and is told by a `waiting` when to ask
/// again.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: one object, in the host. What participants have overwritten in shared memory cannot make it keep
/// more than its limits, or close what a living process has deposited.
class descriptor_store final : public descriptor_exchange {
public:
  struct limits {
    std::size_t each = 4096;  ///< of one participant
    std::size_t all = 0;      ///< together; 0: half of what RLIMIT_NOFILE lets this process have
  };
  struct statistics {
    std::size_t kept = 0;
    std::size_t waiting = 0;  ///< for deposits, of participants elsewhere
  };
  /// A descriptor that is kept, and stays open while anybody has this.
  using kept_fd = std::shared_ptr<const unique_fd>;

  /// What has become of a name.
  struct finding {
    enum class standing {
      there,    ///< deposited
      awaited,  ///< it may be deposited yet
      gone      ///< it will not be (any more)
    };
    standing what = standing::gone;
    kept_fd descriptor;
  };

  /// Has a function called each time that something becomes of a name, until this is destroyed; after that it neither
  /// is nor will be running. It is called on whatever thread, under the store's lock: it must not touch the store, and
  /// must not wait.
  ///
  /// Thread safety: distinct objects: safe. Shared objects: unsafe.
  /// Lifetime: borrows the store.
  class waiting {
  public:
    waiting(descriptor_store& store, descriptor_name name, std::function<void()> settled);
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;
    ~waiting();

  private:
    descriptor_store& store_;
    std::multimap<descriptor_name, std::function<void()>>::iterator place_;
  };

  /// Lifetime: borrows the parts of the host's domain.
  descriptor_store(arena& memory, participant_table& members, recovery_registry& recoveries)
      : descriptor_store(memory, members, recoveries, limits()) {}
  descriptor_store(arena& memory, participant_table& members, recovery_registry& recoveries, limits most);
  ~descriptor_store() override;

  /// As descriptor_exchange::deposit, for whichever participant is named. Requires: that one wants it.
  void deposit(descriptor_name name, unique_fd what, const shared_block& anchor) override MUSTER_EXCLUDES(mutex_);
  /// Requires: not called on the supervisor's thread, which hears of deposits.
  [[nodiscard]] std::optional<unique_fd> fetch(descriptor_name name, deadline until) override MUSTER_EXCLUDES(mutex_);
  void withdraw(descriptor_name name) noexcept override MUSTER_EXCLUDES(mutex_);
  void let_go(descriptor_name name) noexcept override MUSTER_EXCLUDES(mutex_);

  /// What has become of the name by now.
  [[nodiscard]] finding look_up(descriptor_name name) const MUSTER_EXCLUDES(mutex_);

  /// Has `what` called when a participant has died, once for each anchor of what it has deposited: before anything else
  /// that the dead one had is recovered, so that whoever waits for a word of an anchor is let go before he is told of
  /// the death in another way. As a recovery_registry::action; the registration must not outlive the domain.
  [[nodiscard]] recovery_registry::registration on_depositor_death(
      std::function<void(const shared_block& anchor)> what);

  /// From now on the participant deposits nothing more: who waits for it is told. Requires: it is dead, and withdrawn
  /// from the table of participants.
  void bury(participant_id dead) MUSTER_EXCLUDES(mutex_);
  /// Closes what dead participants have deposited and nobody else holds the anchor of. Cost: each of those is looked
  /// at.
  void tidy() MUSTER_EXCLUDES(mutex_);

  [[nodiscard]] statistics read_statistics() const MUSTER_EXCLUDES(mutex_);

private:
  struct entry {
    kept_fd what;
    std::uint64_t anchor = 0;  // name of the block; 0: none
  };
  // One handle for all that are anchored to the block, so that it is unique when nobody else has any.
  struct anchored {
    shared_block block;
    std::size_t entries = 0;
  };
  struct depositor {
    std::size_t entries = 0;
    std::uint32_t next = 0;           // no number from here on has been used
    std::set<std::uint32_t> skipped;  // below, those that have not either
    bool is_dead = false;
  };
  // What an entry was, to be destroyed when the lock is released: closing may take a while.
  struct remains {
    entry what;
    shared_block anchor;
  };
  using entry_map = std::map<descriptor_name, entry>;
  using depositor_map = std::map<descriptor_name, depositor>;  // by their name of number 0

  void require_room(const depositor& who, descriptor_name name) const MUSTER_REQUIRES(mutex_);
  void attach(std::uint64_t anchor, const shared_block& block) MUSTER_REQUIRES(mutex_);
  remains take_out(entry_map::iterator which) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool lives(descriptor_name name) const;
  [[nodiscard]] bool is_awaited(descriptor_name name) const MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_forlorn(const entry& which) const MUSTER_REQUIRES(mutex_);
  void use_up(depositor& who, std::uint32_t number) MUSTER_REQUIRES(mutex_);
  void settle(descriptor_name first, descriptor_name last) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::vector<shared_block> anchors_of(participant_id dying) const MUSTER_EXCLUDES(mutex_);

  arena& memory_;
  participant_table& members_;
  recovery_registry& recoveries_;
  const limits most_;

  mutable mutex mutex_;
  condition changed_;
  entry_map entries_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::uint64_t, anchored> anchors_ MUSTER_GUARDED_BY(mutex_);  // by name of the block
  depositor_map depositors_ MUSTER_GUARDED_BY(mutex_);  // the dead ones while something is left of them
  std::multimap<descriptor_name, std::function<void()>> waiting_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
