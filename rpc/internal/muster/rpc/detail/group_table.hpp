// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/memory/detail/wait/rank_identity.hpp>
#include <muster/rpc/rpc_status.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

/// The figures of an RPC group, which stand in its header.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct table_shape {
  std::uint64_t members = 0;  ///< lines for them, used or not
  std::uint64_t named = 0;    ///< of these, the ticket's own: the first ones
  std::uint64_t names = 0;    ///< lines for services and values
  std::uint64_t calls = 0;    ///< that a member may have under way at once
  std::uint64_t inbox = 0;    ///< requests that may wait for a member
  std::chrono::nanoseconds timeout{};

  static constexpr std::uint64_t most_members = 4096;
  [[nodiscard]] std::size_t total_bytes() const noexcept;
};

/// What a member is to the group. In its presence word: `{incarnation:32, before_left:1, serves:1, state:8}`.
enum class presence : std::uint8_t { expected, joined, left };

/// A line of each member, which it alone writes but for the first part, which the maker of the ticket writes.
struct alignas(64) member_line {
  static constexpr std::size_t most_name_bytes = 176;

  std::atomic<std::uint64_t> requests;  ///< names of its rings' blocks; 0: there are none yet
  std::atomic<std::uint64_t> replies;
  std::atomic<std::uint32_t> name_bytes;
  std::atomic<std::uint32_t> executable;  ///< its entry in the directory of modules, plus 1; 0: it has not joined yet
  std::array<char, most_name_bytes> name;
  std::atomic<std::uint64_t> actor;       ///< an actor_state; written by the program
  std::atomic<std::uint64_t> identity;    ///< a rank_identity; 0: of no process
  std::atomic<std::uint64_t> presence;    ///< written after it
  std::atomic<std::uint64_t> barriers;    ///< so many it has come to
  std::atomic<std::uint64_t> joined_at;   ///< stamp, before presence is written
  std::atomic<std::uint64_t> left_at;     ///< likewise
  std::atomic<std::uint32_t> unattended;  ///< 1: a process that sends a request calls for help
  std::atomic<std::uint32_t> help;        ///< a futex; how often that was called for
};
static_assert(sizeof(member_line) == 256);

/// A line of a service or value that was named (name_table.hpp).
struct alignas(64) name_line {
  static constexpr std::size_t most_name_bytes = 176;

  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> object;       ///< the owner's number for it
  std::atomic<std::uint64_t> cell;         ///< name of a value's cell; 0 of a service
  std::atomic<std::uint64_t> type;         ///< fingerprint of what it is
  std::atomic<std::uint32_t> incarnation;  ///< of the owner
  std::atomic<std::uint32_t> member;       ///< the owner
  std::atomic<std::uint32_t> kind;
  std::atomic<std::uint32_t> name_bytes;
  std::array<char, most_name_bytes> name;
  std::atomic<std::uint64_t> made_at;  ///< stamp; 0: it was refused
  std::atomic<std::uint64_t> gone_at;  ///< stamp of the last name here that was given up
  std::array<char, 16> unused;
};
static_assert(sizeof(name_line) == 256);

/// A line of each call that a member may have under way.
struct alignas(32) rpc_call_line {
  std::atomic<std::uint64_t> word;       ///< call_word.hpp
  std::atomic<std::uint64_t> waits_for;  ///< wait_graph.hpp
  std::atomic<std::uint64_t> object;     ///< what is called: request_head::object; for messages
  std::uint64_t unused;
};
static_assert(sizeof(rpc_call_line) == 32);

/// The shared memory of an RPC group: header, modules, a line of each member, lines of names, lines of calls. Layout:
/// docs/formats/rpc.md.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: all members use it at once; the figures were read once and do not change.
/// Lifetime: borrows the memory.
class group_table {
public:
  using call_lines = std::span<rpc_call_line>;

  /// Makes one in `bytes`. Requires: they are aligned to 64, and as many as shape.total_bytes().
  static group_table make(std::span<std::byte> bytes, const table_shape& shape, std::string_view name) noexcept;
  /// Throws errc::corrupted when `bytes` hold none.
  static group_table attach(std::span<std::byte> bytes);

  [[nodiscard]] const table_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::string name() const;
  [[nodiscard]] module_directory modules() const noexcept { return module_directory(modules_, module_directory_size); }
  /// Requires: below shape().members; the same of calls_of().
  [[nodiscard]] member_line& member(std::size_t index) const noexcept { return members_[index]; }
  [[nodiscard]] std::span<name_line> names() const noexcept { return {names_, shape_.names}; }
  /// How many lines of names have been used so far.
  [[nodiscard]] std::atomic<std::uint64_t>& names_used() const noexcept { return *names_used_; }
  [[nodiscard]] call_lines calls_of(std::size_t member) const noexcept {
    return {calls_ + member * shape_.calls, shape_.calls};
  }
  /// A futex (wait_protocol.hpp) of all who wait for a member to join, a name, or a barrier.
  [[nodiscard]] std::atomic<std::uint32_t>& news() const noexcept { return *news_; }

  /// For a line that is used for the first time and is none of the ticket's own.
  void clear_calls_of(std::size_t member) const noexcept;

  /// Of what is about to change: each is larger than the one before.
  [[nodiscard]] std::uint64_t new_stamp() const noexcept {
    return changes_->fetch_add(1, std::memory_order_seq_cst) + 1;
  }

  [[nodiscard]] std::string name_of(std::size_t member) const;
  void set_name(std::size_t member, std::string_view name) const noexcept;
  /// Nothing when none has that name.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;

private:
  explicit group_table(std::span<std::byte> bytes, const table_shape& shape) noexcept;

  table_shape shape_;
  std::byte* header_;
  module_entry* modules_;
  member_line* members_;
  name_line* names_;
  rpc_call_line* calls_;
  std::atomic<std::uint64_t>* names_used_;
  std::atomic<std::uint64_t>* changes_;
  std::atomic<std::uint32_t>* news_;
};

/// A member as others see it at one moment.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct member_view {
  rank_identity who;
  std::uint32_t incarnation = 0;
  detail::presence state = presence::expected;
  bool serves = false;       ///< else it only calls
  bool before_left = false;  ///< whether the incarnation before has left; else it has died, or there was none

  [[nodiscard]] static member_view of(const group_table& table, std::size_t member) noexcept;
  /// Whether it can be called: it has joined, and its process lives.
  [[nodiscard]] bool is_here(const domain& where) const noexcept {
    return state == presence::joined && who.is_alive(where);
  }
  /// As programs are told.
  [[nodiscard]] member_state told_as(const domain& where) const noexcept;
  /// Whether its process is gone, and was about to join.
  [[nodiscard]] bool has_died_joining(const domain& where) const noexcept {
    return state == presence::expected && incarnation != 0 && !who.is_alive(where);
  }
  /// Whether it had joined, and its process is gone.
  [[nodiscard]] bool is_lost(const domain& where) const noexcept {
    return state == presence::joined && !who.is_alive(where);
  }
};

/// What a member is to the program that may have started it: in its line.
enum class actor_state : std::uint64_t {
  none,  ///< it joins by itself
  kept,  ///< it is here, or will be again
  over   ///< it will not come back
};

/// Whether it is an actor that is here, or will be again.
[[nodiscard]] inline bool is_kept_actor(const group_table& table, std::size_t member) noexcept {
  return table.member(member).actor.load(std::memory_order_seq_cst) == static_cast<std::uint64_t>(actor_state::kept);
}

inline constexpr std::uint64_t presence_before_left = 0x200U;

[[nodiscard]] constexpr std::uint64_t pack_presence(std::uint32_t incarnation, presence state,
                                                    bool serves = false) noexcept {
  return std::uint64_t{incarnation} << 32U | (serves ? 0x100U : 0U) | static_cast<std::uint64_t>(state);
}

}  // namespace muster::detail
