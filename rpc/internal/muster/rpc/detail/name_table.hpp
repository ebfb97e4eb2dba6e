// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/memory/domain.hpp>
#include <muster/rpc/detail/group_table.hpp>

namespace muster::detail {

/// What a name stands for. Services and values are told apart: one name can be both.
enum class named_kind : std::uint32_t { service = 1, value = 2 };

/// What was named.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct named_thing {
  named_kind kind = named_kind::service;
  std::string name;
  std::size_t member = 0;         ///< the owner
  std::uint32_t incarnation = 0;  ///< of the owner
  std::uint64_t object = 0;       ///< the owner's number for it
  std::uint64_t cell = 0;         ///< of a value
  std::uint64_t type = 0;         ///< fingerprint
};

/// The names of a group's services and values, in its shared memory. A name belongs to the process that made it, and
/// is gone with that: it is not found any more, and its line is used again.
///
/// A line's word is `{generation:24, state:8, participant:16, incarnation:16}`. A process that makes a name claims a
/// line, writes it, says that it is *pending*, and looks at all others. If one has the name already, it is refused. If
/// another is pending with the same name, the one with the higher line gives way and begins anew; the lower one waits
/// until that has happened. So of several that make a name at once, one gets it.
///
/// Thread safety: safe. Process safety: any process may be killed at any step; one that is stopped while it makes a
/// name holds up those that make the same, until their time has passed.
/// Cost: looking goes over all lines that were ever used at once.
class name_table {
public:
  /// Lifetime: borrows both.
  name_table(const group_table& table, const domain& where) noexcept : table_(table), domain_(where) {}

  /// Makes a name. Nothing when it was free, else what has it. Throws errc::invalid_argument for a name that is too
  /// long, errc::out_of_memory when there is no line left, errc::timed_out.
  [[nodiscard]] std::optional<named_thing> insert(const named_thing& what, deadline until);
  [[nodiscard]] std::optional<named_thing> find(named_kind kind, std::string_view name) const;
  /// False when it is not the name of that thing.
  bool erase(const named_thing& what);
  /// All that there are, in no order.
  [[nodiscard]] std::vector<named_thing> all() const;

  /// What a line holds, or has held last.
  ///
  /// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
  struct line_view {
    std::uint64_t generation = 0;  ///< how often it has been used
    bool is_ready = false;         ///< whether it was made, and not given up
    bool is_there = false;         ///< whether there is that name now: its owner's process lives, too
    std::uint64_t made_at = 0;     ///< stamp; 0: it never was
    std::uint64_t gone_at = 0;     ///< stamp of the last one here that was given up
    named_thing what;
  };
  /// Nothing while it is being written.
  [[nodiscard]] std::optional<line_view> view(std::size_t index) const;
  /// How many lines there have been names in; a name that was given up stays in its line until that is used again, the
  /// one that was given up longest ago first, and not before there are `spare_lines` of them.
  [[nodiscard]] std::size_t used() const noexcept;

  static constexpr std::size_t spare_lines = 64;

private:
  enum class state : std::uint8_t { free, writing, pending, ready };
  enum class verdict : std::uint8_t { won, gives_way, refused };
  struct claimed_line {
    std::size_t index = 0;
    std::uint64_t word = 0;
  };

  [[nodiscard]] static std::uint64_t pack(std::uint64_t generation, state now, const rank_identity& owner) noexcept;
  [[nodiscard]] static state state_of(std::uint64_t word) noexcept;
  [[nodiscard]] bool is_alive(std::uint64_t word) const noexcept;
  [[nodiscard]] std::optional<claimed_line> claim();
  void write(std::size_t index, const named_thing& what) const noexcept;
  [[nodiscard]] verdict decide(const claimed_line& mine, const named_thing& what, deadline until,
                               std::optional<named_thing>& other) const;
  void set(claimed_line& mine, state now) const noexcept;
  /// `now`: gets the state that it was read in.
  [[nodiscard]] std::optional<named_thing> read(std::size_t index, state least, state* now = nullptr) const;
  [[nodiscard]] std::optional<std::size_t> find_free() const noexcept;
  [[nodiscard]] named_thing copy_of(const name_line& line) const;

  const group_table& table_;
  const domain& domain_;
};

}  // namespace muster::detail
