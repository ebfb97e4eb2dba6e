// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <muster/base/requirements.hpp>

namespace muster {

/// Where a task is. Who may change it: docs/formats/board.md.
enum class slot_state : std::uint8_t { free, queued, claimed, done };

/// What rides along in the word. The first three are requests to whoever completes the task; they may be set at any
/// time, so every compare-and-swap on the word keeps them. The three kinds of reply have a bit each, of which exactly
/// one is set: a flipped bit shows.
enum class slot_flag : std::uint8_t {
  none = 0,
  waiter = 1,           ///< somebody sleeps on this word: wake it
  notify = 2,           ///< also enter the slot into your completion ring and ring the bell
  stop = 4,             ///< the task is asked to stop
  block_arguments = 8,  ///< the arguments lie in a block
  failed = 16,          ///< done: the reply is an error
  line_reply = 32,      ///< done: the reply lies in the slot's second line …
  block_reply = 64,     ///< done: … or in a block …
  small_reply = 128,    ///< done: … or in the eight bytes of the token; always one of the three
  timed = 16,           ///< before that: the worker notes when it begins (a bit that is used twice)
  doomed = 32,          ///< claimed: the worker is about to be killed, and claims nothing more (likewise)
  again = 64,           ///< before that: not the first attempt; which it is says the second line (likewise)
};

[[nodiscard]] constexpr slot_flag operator|(slot_flag a, slot_flag b) noexcept {
  return static_cast<slot_flag>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr slot_flag operator&(slot_flag a, slot_flag b) noexcept {
  return static_cast<slot_flag>(static_cast<std::uint8_t>(a) & static_cast<std::uint8_t>(b));
}

/// The one authoritative word of a task slot: `{generation:42, owner:10, flags:8, state:4}`.
///
/// The generation grows whenever the slot is used for another task, so a hint to an earlier one is recognised as
/// stale. Its lowest ten bits lie in the half that the futex compares: a sleeper cannot mistake a later task in the
/// same slot for its own.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class slot_word {
public:
  static constexpr unsigned most_owners = (1U << 10U) - 1;  // 0 means nobody

  constexpr slot_word() noexcept = default;
  constexpr explicit slot_word(std::uint64_t bits) noexcept : bits_(bits) {}
  constexpr slot_word(std::uint64_t generation, unsigned owner, slot_flag flags, slot_state state) noexcept
      : bits_(generation << 22U | std::uint64_t{owner} << 12U | std::uint64_t{static_cast<std::uint8_t>(flags)} << 4U |
              static_cast<std::uint64_t>(state)) {}

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr std::uint64_t generation() const noexcept { return bits_ >> 22U; }
  /// What fits into a hint: enough to tell generations apart, since a stale hint is harmless in any case.
  [[nodiscard]] constexpr std::uint32_t short_generation() const noexcept {
    return static_cast<std::uint32_t>(generation());
  }
  /// Index of the worker plus one; 0: nobody.
  [[nodiscard]] constexpr unsigned owner() const noexcept { return bits_ >> 12U & 0x3ffU; }
  [[nodiscard]] constexpr slot_flag flags() const noexcept { return static_cast<slot_flag>(bits_ >> 4U & 0xffU); }
  [[nodiscard]] constexpr bool has(slot_flag flag) const noexcept { return (flags() & flag) != slot_flag::none; }
  /// A value that is no state is possible in a corrupted word only.
  [[nodiscard]] constexpr slot_state state() const noexcept { return static_cast<slot_state>(bits_ & 0xfU); }

  [[nodiscard]] static constexpr std::uint64_t flag_bits(slot_flag flags) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(flags)} << 4U;
  }

  friend constexpr bool operator==(const slot_word&, const slot_word&) noexcept = default;

private:
  std::uint64_t bits_ = 0;
};

}  // namespace muster
