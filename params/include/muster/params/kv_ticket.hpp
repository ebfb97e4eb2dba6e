// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <muster/base/detail/duration.hpp>
#include <muster/params/kv_kind.hpp>
#include <muster/params/store_ticket.hpp>
#include <muster/rpc/rpc_ticket.hpp>

namespace muster {

/// How a key-value store is made. They lie in its ticket, so that workers cannot differ about them.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_options {
  std::size_t workers = 1;       ///< that push; their ranks are 0 to workers - 1
  std::size_t spare_owners = 0;  ///< further processes, of the ranks behind, that only own keys
  std::size_t owners = 0;        ///< of all these, the first so many own keys; 0: all
  /// How long calls wait that are not told how long.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// Of async: a worker's push of a key waits while it is so many pushes of that key ahead of the slowest worker that
  /// has pushed it and is there still. Without: it never waits.
  std::optional<std::uint64_t> staleness{};
  std::size_t enough = 0;        ///< of sync: so many pushes make a round complete, and later ones are dropped; 0: all
  std::size_t window = 16;       ///< how many asynchronous operations of a worker are under way at once
  std::size_t most_keys = 4096;  ///< of values; the store has six for each
};

/// What a process needs to take part in a key-value store: made by the program, and given to workers as an argument.
///
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
/// Lifetime: keeps the store's memory.
class kv_ticket {
public:
  /// For no store: to be assigned to.
  kv_ticket() noexcept = default;
  /// Makes one of kind sync or async; of another only for one worker. Throws errc::invalid_argument in a worker, and
  /// for options out of their range; errc::out_of_memory.
  kv_ticket(kv_kind kind, const kv_options& options);

  /// Whether it is for any store.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(values_); }
  /// Returns what kind of store it is for.
  [[nodiscard]] kv_kind kind() const noexcept { return kind_; }
  /// Returns how that was made.
  [[nodiscard]] const kv_options& options() const noexcept { return options_; }
  /// Returns the ticket of the store that has the values.
  [[nodiscard]] const store_ticket& values() const noexcept { return values_; }
  /// Returns the ticket of the group of those that take part.
  [[nodiscard]] const rpc_ticket& members() const noexcept { return members_; }

  /// For cereal. Throws as its parts.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(kind_, options_.workers, options_.spare_owners, options_.owners, timeout_, staleness_, options_.enough,
            options_.window, options_.most_keys, values_, members_);
    options_.timeout = std::chrono::nanoseconds(timeout_);
    options_.staleness = staleness_ < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(staleness_));
  }

private:
  kv_kind kind_ = kv_kind::sync;
  kv_options options_;
  std::int64_t timeout_ = 0;     // as it travels
  std::int64_t staleness_ = -1;  // likewise
  store_ticket values_;
  rpc_ticket members_;
};

}  // namespace muster
