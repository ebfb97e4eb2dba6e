// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/wait/place.hpp>
#include <muster/memory/detail/wait/sleeper.hpp>
#include <muster/memory/domain.hpp>
#include <muster/params/detail/commit_record.hpp>
#include <muster/params/detail/snapshot.hpp>
#include <muster/params/detail/store_access.hpp>
#include <muster/params/detail/store_table.hpp>
#include <muster/params/store_ticket.hpp>

namespace muster::detail {

/// The newest version of a key at one moment.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct newest_version {
  version_word raw{};        ///< as it is in the line: maybe a mark
  version_word word{};       ///< what that stands for
  std::uint64_t number = 0;  ///< also of one that was erased
  snapshot block{};          ///< where it lies in one: kept

  /// What callers are told: 0 where there is no value.
  [[nodiscard]] std::uint64_t version() const noexcept { return word.is_erased() ? 0 : number; }
  /// Whether a push that expects that, if anything, may replace it.
  [[nodiscard]] bool fits(std::optional<std::uint64_t> expected) const noexcept {
    return !expected || *expected == version();
  }
};

/// A process's part of a store.
///
/// Thread safety: safe.
/// Process safety: any process may be killed at any instruction (docs/design/params.md).
class store_core {
public:
  [[nodiscard]] static store_ptr open(const store_ticket& ticket);
  /// The same store again, for what looks at many keys once: what it has seen goes with it.
  [[nodiscard]] store_ptr open_again() const { return open(ticket_); }
  store_core(const store_core&) = delete;
  store_core& operator=(const store_core&) = delete;
  ~store_core();

  [[nodiscard]] const store_table& table() const noexcept { return table_; }
  [[nodiscard]] arena& memory() const noexcept { return domain_->blocks(); }
  /// Throws errc::forked in a forked child.
  void require_here() const;
  /// Until when a function waits that was told so; 0: the ticket's time.
  [[nodiscard]] deadline end_of_wait(std::chrono::nanoseconds given) const;
  /// Whether so short a value lies beside its key.
  [[nodiscard]] bool is_short(std::size_t bytes) const noexcept;

  /// The line of a key. Throws errc::invalid_argument for one that is too long, errc::out_of_memory.
  [[nodiscard]] std::size_t require_line(const store_key& key);
  [[nodiscard]] std::optional<std::size_t> find_line(const store_key& key) const;
  [[nodiscard]] newest_version look(std::size_t line) MUSTER_EXCLUDES(seen_mutex_);
  /// Whether that is the newest version still.
  [[nodiscard]] bool is_still(std::size_t line, const newest_version& which);
  /// The newest, as `of` says, or that one; nothing where it is not there, or of() is not the newest any more.
  [[nodiscard]] std::optional<found_version> read(std::size_t line, const newest_version& of,
                                                  std::optional<std::uint64_t> version);
  [[nodiscard]] std::optional<found_version> find(const store_key& key, std::optional<std::uint64_t> version);

  /// As store::push.
  ///@{
  [[nodiscard]] push_result push_short(std::size_t line, std::uint64_t type, std::span<const std::byte> value,
                                       std::optional<std::uint64_t> expected);
  [[nodiscard]] push_result push_block(std::size_t line, const snapshot& made, std::optional<std::uint64_t> expected);
  ///@}
  /// A block for a value of so many bytes and its head. Throws errc::out_of_memory.
  [[nodiscard]] shared_block make_room(std::size_t bytes);
  /// Writes the head of a value that lies, or will lie, at the beginning of that block. Requires: there is room.
  [[nodiscard]] snapshot make_snapshot(const shared_block& of, std::uint64_t type, std::size_t bytes) const;
  /// Both. Throws errc::out_of_memory.
  [[nodiscard]] snapshot make_block(std::uint64_t type, std::size_t bytes) {
    return make_snapshot(make_room(bytes), type, bytes);
  }
  bool erase(std::size_t line);
  /// One of several new versions: which line, in which block, which version is expected to be the newest, and which
  /// it is to be at least.
  struct part {
    std::size_t line = 0;
    snapshot made{};
    std::optional<std::uint64_t> expected{};
    std::uint64_t least = 0;
  };
  /// As store::push_all. Requires: sorted by line, each once.
  [[nodiscard]] push_all_result push_all(std::span<const part> all);

  /// Waits until `done`, which is asked again whenever one of the keys of that bell has another version.
  bool wait(const store_key& key, const std::function<bool()>& done, deadline until);
  /// All that wait look again.
  void wake_all() const noexcept;

private:
  explicit store_core(const store_ticket& ticket);
  [[nodiscard]] std::optional<snapshot> keep_newest(std::size_t line, version_word word) MUSTER_EXCLUDES(seen_mutex_);
  void note_seen(std::size_t line, version_word word, const snapshot& which) noexcept MUSTER_EXCLUDES(seen_mutex_);
  void forget_seen(std::size_t line) noexcept MUSTER_EXCLUDES(seen_mutex_);
  /// The same, of a word that is no mark: an open record that it names is refused.
  [[nodiscard]] newest_version look_to_change(std::size_t line);
  /// What a line's word stands for; nothing where it is another by now.
  [[nodiscard]] std::optional<version_word> resolve(std::size_t line, version_word raw);
  [[nodiscard]] std::optional<found_version> read_short(std::size_t line, const newest_version& of);
  /// Lets others write to a room.
  ///
  /// Thread safety: safe.
  struct room_writer {
    void operator()(short_room* room) const noexcept;
  };
  struct claimed_room {
    std::size_t index = 0;
    std::unique_ptr<short_room, room_writer> room{};  ///< none: all are with others
  };
  [[nodiscard]] claimed_room claim_room(std::size_t line);
  [[nodiscard]] bool replace(std::size_t line, const newest_version& before, version_word by);
  [[nodiscard]] bool publish(std::size_t line, const newest_version& before, const snapshot& made);
  [[nodiscard]] bool commit(std::span<const part> all, std::span<const newest_version> before,
                            std::vector<version_word>& after);
  [[nodiscard]] bool mark_all(const commit_record& record, version_word mark) const;
  void tell(const key_line& line) const noexcept;

  const store_ticket ticket_;
  const std::shared_ptr<domain> domain_;
  const store_table table_;
  const std::uint64_t self_;  // a rank_identity
  place_word place_ = 0;
  const sleeper sleeper_;
  struct seen {
    version_word word;
    snapshot which;
  };
  mutex seen_mutex_;
  std::unordered_map<std::size_t, seen> seen_ MUSTER_GUARDED_BY(seen_mutex_);  // by line: kept in a block
  std::atomic<std::size_t> seen_count_ = 0;
};

}  // namespace muster::detail
