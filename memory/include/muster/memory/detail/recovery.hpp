// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/participant.hpp>

namespace muster {

/// The order in which the structures of a domain are recovered after a death. What goes with descriptors is first: work
/// that waits there for the dead one is let go. Queues are next: who is told of the death by the end of a task finds
/// there what the dead one was reading. Blocks are last: until then, what a slot or queue still refers to is found and
/// adopted.
enum class recovery_stage { descriptors, queues, boards, groups, worlds, blocks };

/// Where every shared structure says what must be done when a participant has died.
///
/// Thread safety: distinct objects: safe. Shared objects: safe; an action runs under the registry's lock, so it is
/// never running after its registration has been destroyed.
/// Process safety: one registry, in the host, which is the only one who recovers.
class recovery_registry {
public:
  /// Called once per death, after the kernel has confirmed it. Must not throw and must not touch the registry.
  using action = std::function<void(participant_id dead)>;

  /// Removes the action when destroyed; waits for it while it runs.
  class registration {
  public:
    registration() = default;
    registration(registration&& other) noexcept
        : registry_(std::exchange(other.registry_, nullptr)), key_(std::move(other.key_)) {}
    registration& operator=(registration&& other) noexcept {
      std::swap(registry_, other.registry_);
      std::swap(key_, other.key_);
      return *this;
    }
    ~registration();

  private:
    friend class recovery_registry;
    using key = std::pair<recovery_stage, std::uint64_t>;
    registration(recovery_registry& registry, key which) : registry_(&registry), key_(which) {}

    recovery_registry* registry_ = nullptr;
    key key_;
  };

  /// Lifetime: the registry must outlive the registration.
  [[nodiscard]] registration add(recovery_stage stage, action what);

  /// Runs all actions, stage by stage, within a stage in the order of registration.
  void run(participant_id dead);

private:
  mutex mutex_;
  std::map<registration::key, action> actions_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t next_ MUSTER_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster
