// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <muster/base/detail/duration.hpp>
#include <muster/memory/detail/participant.hpp>
#include <muster/params/store_key.hpp>

namespace muster::detail {

/// The figures of a store, which stand in its header.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct store_shape {
  std::uint64_t keys = 0;          ///< that there may be
  std::uint64_t depth = 0;         ///< versions that are kept of each
  std::uint64_t participants = 0;  ///< of the domain: each has a line
  std::chrono::nanoseconds timeout{};

  static constexpr std::uint64_t most_keys = std::uint64_t{1} << 20U;
  static constexpr std::uint64_t most_depth = 1024;
  [[nodiscard]] std::size_t total_bytes() const noexcept;
  static constexpr std::uint64_t most_spare = 256;
  /// For keys: each process may have one that no key has.
  [[nodiscard]] std::size_t lines() const noexcept {
    return static_cast<std::size_t>(keys + std::min(participants, most_spare));
  }
  /// Of the index: a power of two, at least twice the keys.
  [[nodiscard]] std::size_t places() const noexcept;
};

/// Which version of a key is the newest: the truth about it, changed by compare-and-swap only. 0: there was none yet. A
/// version lies in a block, `{descriptor:32, generation:32}` of the hold on it, or in one of the key's own rooms,
/// `{1:1, 0:1, room:6, version:56}`. An erased one, `{1:1, 1:1, 0:6, version:56}`, has no value. A mark,
/// `{1:1, 1:1, 63:6, descriptor:24, generation:32}` of the hold on a commit_record, stands for what that says.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class version_word {
public:
  constexpr version_word() noexcept = default;
  explicit constexpr version_word(std::uint64_t bits) noexcept : bits_(bits) {}
  [[nodiscard]] static constexpr version_word in_room(std::size_t room, std::uint64_t version) noexcept {
    return version_word(short_bit | std::uint64_t{room} << low_bits | version);
  }
  [[nodiscard]] static constexpr version_word erased(std::uint64_t version) noexcept {
    return version_word(short_bit | erased_bit | version);
  }
  /// Requires: can_mark(hold).
  [[nodiscard]] static constexpr version_word mark(std::uint64_t hold) noexcept {
    return version_word(mark_bits | hold);
  }
  [[nodiscard]] static constexpr bool can_mark(std::uint64_t hold) noexcept { return (hold & ~low_mask) == 0; }

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr bool is_any() const noexcept { return bits_ != 0; }
  [[nodiscard]] constexpr bool is_block() const noexcept { return is_any() && (bits_ & short_bit) == 0; }
  [[nodiscard]] constexpr bool is_mark() const noexcept { return (bits_ & ~low_mask) == mark_bits; }
  [[nodiscard]] constexpr bool is_erased() const noexcept {
    return (bits_ & (short_bit | erased_bit)) == (short_bit | erased_bit) && !is_mark();
  }
  [[nodiscard]] constexpr bool is_in_room() const noexcept { return (bits_ & (short_bit | erased_bit)) == short_bit; }
  /// Requires: neither in a block nor a mark.
  [[nodiscard]] constexpr std::uint64_t version() const noexcept { return bits_ & low_mask; }
  /// The hold. Requires: it is a mark.
  [[nodiscard]] constexpr std::uint64_t marked() const noexcept { return bits_ & low_mask; }
  /// Requires: in a room.
  [[nodiscard]] constexpr std::size_t room() const noexcept {
    return static_cast<std::size_t>(bits_ >> low_bits & 0x3fU);
  }
  friend constexpr bool operator==(const version_word&, const version_word&) noexcept = default;

private:
  static constexpr unsigned low_bits = 56;
  static constexpr std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;
  static constexpr std::uint64_t short_bit = std::uint64_t{1} << 63U;
  static constexpr std::uint64_t erased_bit = std::uint64_t{1} << 62U;
  static constexpr std::uint64_t mark_bits = ~low_mask;

  std::uint64_t bits_ = 0;
};

/// Room for a short value beside its key. The process that writes there has it: `{participant:16, incarnation:16,
/// pid:32}`; 0, or that of a dead process: it is free. The newest version's room is free, and is not written to.
struct alignas(64) short_room {
  static constexpr std::size_t most_bytes = 256;
  using words = std::array<std::atomic<std::uint64_t>, most_bytes / sizeof(std::uint64_t)>;

  std::atomic<std::uint64_t> writer;
  std::atomic<std::uint64_t> type;  ///< fingerprint
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> unused;
  words value;
};
static_assert(sizeof(short_room) == 320);

/// The line of a key. What it is called was written before the line was found by others, and does not change.
struct alignas(64) key_line {
  static constexpr std::size_t rooms = 4;  ///< one is the newest, and others may be with processes that are stopped

  std::atomic<std::uint64_t> newest;  ///< a version_word
  std::uint64_t is_number;
  std::int64_t number;
  std::uint64_t text_bytes;
  std::uint64_t hash;
  std::array<char, store_key::most_bytes> text;
  std::array<char, 32> unused;
  std::array<short_room, rooms> room;
};
static_assert(sizeof(key_line) == 256 + 4 * sizeof(short_room));

/// A hold that a participant is about to publish, or to let go of: that no process has for itself, and that no line may
/// name.
struct alignas(64) pusher_line {
  /// Of `line`: those behind it go, too. Not of a new version, behind which is what is the newest still.
  static constexpr std::uint64_t with_those_behind = std::uint64_t{1} << 63U;
  /// Of `line`: it is on a commit_record.
  static constexpr std::uint64_t of_record = std::uint64_t{1} << 62U;

  std::atomic<std::uint64_t> hold;  ///< 0: nothing
  std::atomic<std::uint64_t> line;  ///< of which key; written before
};

/// The shared memory of a store: header, a line of each participant, the index of keys, their lines. Layout:
/// docs/formats/store.md.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: all processes use it at once; the figures were read once and do not change.
/// Lifetime: borrows the memory.
class store_table {
public:
  /// Makes one in `bytes`. Requires: they are aligned to 64, and as many as shape.total_bytes().
  static store_table make(std::span<std::byte> bytes, const store_shape& shape) noexcept;
  /// Throws errc::corrupted when `bytes` hold none.
  static store_table attach(std::span<std::byte> bytes);

  [[nodiscard]] const store_shape& shape() const noexcept { return shape_; }
  /// Requires: below shape().lines().
  [[nodiscard]] key_line& line(std::size_t index) const noexcept { return lines_[index]; }
  [[nodiscard]] pusher_line& pusher(participant_id which) const noexcept;
  static constexpr std::size_t bells = 64;
  /// A futex (wait_protocol.hpp) of those that wait for a version of one of some keys.
  ///@{
  [[nodiscard]] std::atomic<std::uint32_t>& bell(std::uint64_t hash) const noexcept;
  [[nodiscard]] std::atomic<std::uint32_t>& bell_of(const store_key& key) const noexcept;
  [[nodiscard]] std::atomic<std::uint32_t>& bell_of(const key_line& line) const noexcept { return bell(line.hash); }
  ///@}

  /// The line of a key; nothing where it has none yet.
  [[nodiscard]] std::optional<std::size_t> find(const store_key& key) const noexcept;
  /// The same, or a new one. `spare`: a line that was given out to this process and that no key has; the one that it
  /// needs is taken from there, and one that was not needed is left there. Nothing when there are no more lines.
  [[nodiscard]] std::optional<std::size_t> find_or_add(const store_key& key, std::optional<std::size_t>& spare) const;
  [[nodiscard]] store_key key_of(std::size_t line) const;
  /// How many more keys there may be.
  [[nodiscard]] std::size_t keys_left() const noexcept;
  /// Calls `what(line)` for each key that there is.
  template <class What>
  void for_each(const What& what) const {
    for (std::size_t place = 0; place < shape_.places(); ++place) {
      const auto found = line_in(index_[place].load(std::memory_order_acquire));
      if (found) what(*found);
    }
  }

private:
  explicit store_table(std::span<std::byte> bytes, const store_shape& shape) noexcept;
  [[nodiscard]] std::optional<std::size_t> line_in(std::uint64_t place) const noexcept;
  [[nodiscard]] std::optional<std::size_t> take_line() const noexcept;
  [[nodiscard]] bool has_key(std::uint64_t place, std::uint64_t hash, const store_key& key) const noexcept;

  store_shape shape_;
  std::byte* header_;
  pusher_line* pushers_;
  std::atomic<std::uint64_t>* index_;
  key_line* lines_;
};

}  // namespace muster::detail
