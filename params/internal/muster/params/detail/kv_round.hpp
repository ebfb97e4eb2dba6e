// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <muster/rpc/rpc_status.hpp>

namespace muster::detail {

/// What an owner knows of a worker.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_worker {
  member_state state = member_state::expected;
  std::uint32_t incarnation = 0;  ///< how often its rank has been joined
};

/// Who owns a key: that incarnation of that rank. It lies in the store, and is another one only when that one is gone
/// for good, so that an owner that it names stays the owner as long as it is there.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_ownership {
  std::uint64_t rank = 0;
  std::uint32_t incarnation = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(rank, incarnation);
  }
  friend bool operator==(const kv_ownership&, const kv_ownership&) = default;
};

/// The number of a worker's push of a key: higher ones are later. Those of a rank that is joined anew begin behind all
/// of the one before.
///
/// Thread safety: pure.
///@{
inline constexpr unsigned kv_number_bits = 40;
[[nodiscard]] constexpr std::uint64_t first_number(std::uint32_t incarnation) noexcept {
  return (std::uint64_t{incarnation} << kv_number_bits) + 1;
}
///@}

/// What has become of one worker's pushes of a key.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_rank_record {
  std::uint64_t applied = 0;  ///< number of its last push that has counted, or was dropped
  std::uint64_t failed = 0;   ///< number of the last one that had no effect
  std::uint64_t pushes = 0;   ///< how many have counted
  std::uint32_t told = 0;     ///< the incarnation whose death the others have been told of
  std::uint32_t pending = 0;  ///< the incarnation whose next push has no effect; 0: none's
  std::uint32_t late = 0;     ///< the incarnation whose next push belongs to a round that is over; 0: none's

  template <class Archive>
  void serialize(Archive& archive) {
    archive(applied, failed, pushes, told, pending, late);
  }
  friend bool operator==(const kv_rank_record&, const kv_rank_record&) = default;
};

/// What has become of the pushes of a key: it lies in the store, beside the value, so that the next owner of the key
/// knows it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_record {
  std::vector<kv_rank_record> ranks;
  bool is_loss = false;    ///< whether the last push that had no effect had none because a worker died
  std::string why;         ///< … and the reason
  std::uint64_t rule = 0;  ///< kind of the rule that the states are of; 0: of none
  std::uint64_t step = 0;  ///< how often that has been applied

  template <class Archive>
  void serialize(Archive& archive) {
    archive(ranks, is_loss, why, rule, step);
  }
  friend bool operator==(const kv_record&, const kv_record&) = default;
};

/// What is decided about the pushes of one key, without what they push: which of them make up a round, when it is
/// complete, and what becomes of them when a worker dies. A record that it returns is to be published, and then given
/// to begin() or note().
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class kv_round {
public:
  enum class verdict {
    open,     ///< it belongs to the round that is open
    applied,  ///< it has counted
    failed,   ///< it had no effect
    late,     ///< its round is over without it
    later     ///< its worker's push before it is in the round that is open
  };

  /// `enough`: how many make a round complete; 0: all that are there.
  kv_round(kv_record so_far, std::size_t workers, std::size_t enough);

  [[nodiscard]] verdict look(std::size_t rank, std::uint64_t number) const;
  /// Requires: look() says open.
  void give(std::size_t rank, std::uint64_t number);
  /// Takes that back.
  void drop(std::size_t rank) { given_.erase(rank); }
  [[nodiscard]] bool has(std::size_t rank) const { return given_.contains(rank); }
  [[nodiscard]] bool is_empty() const noexcept { return given_.empty(); }
  [[nodiscard]] const kv_record& record() const noexcept { return record_; }

  /// A worker that has died before its push, which the others are to be told of.
  [[nodiscard]] std::optional<std::size_t> find_loss(std::span<const kv_worker> workers) const;
  [[nodiscard]] bool is_complete(std::span<const kv_worker> workers) const;
  /// Those that a round waits for.
  [[nodiscard]] std::vector<std::size_t> missing(std::span<const kv_worker> workers) const;
  /// Whether a worker that pushes alone is further ahead of the slowest than that.
  [[nodiscard]] bool is_ahead(std::size_t rank, std::uint64_t staleness, std::span<const kv_worker> workers) const;

  /// What the record becomes when the round is applied.
  [[nodiscard]] kv_record after_round(std::span<const kv_worker> workers) const;
  /// … when one push is applied alone.
  [[nodiscard]] kv_record after_push(std::size_t rank, std::uint64_t number, std::span<const kv_worker> workers) const;
  /// … when one push has no effect, alone.
  [[nodiscard]] kv_record after_failed_push(std::size_t rank, std::uint64_t number, std::string why) const;
  /// … when a push that is late is dropped.
  [[nodiscard]] kv_record after_late(std::size_t rank, std::uint64_t number) const;
  /// … when a worker is told, with that push, of what had no effect before.
  [[nodiscard]] kv_record after_telling(std::size_t rank, std::uint64_t number) const;
  /// … when the round has no effect: each worker that is there is told once, with its push or with its next one.
  [[nodiscard]] kv_record after_failure(std::span<const kv_worker> workers, bool is_loss, std::string why) const;
  /// The next round.
  void begin(kv_record record);
  /// The round goes on.
  void note(kv_record record) { record_ = std::move(record); }

private:
  kv_record record_;
  std::size_t workers_;
  std::size_t enough_;
  std::map<std::size_t, std::uint64_t> given_;  // numbers by rank
};

}  // namespace muster::detail
