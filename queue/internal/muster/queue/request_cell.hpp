// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a task asks the parent for another task, and gets the answer: one cell for each call that is under way.
//
//     free      -> requested   worker: publish, after function and arguments were written
//     requested -> free        worker: try_take_back; it runs the call itself
//     requested -> accepted    parent: try_accept; reads the cell, and makes a task of it
//     accepted  -> posted      parent: the task is in a slot, and the cell says in which
//     accepted, posted -> answered   parent: answer, after the reply was written
//     accepted, posted -> free       parent: the same when the request was abandoned
//     answered  -> free        worker: retire, after the reply was read
//
// The worker may set the flags `waiter` and `abandoned` at any time.
//
// `Word` is std::atomic<std::uint64_t>, or what a model checker or stepper puts in its place.
//
// Thread safety: the functions are safe; a worker's cells are requested by its one thread.
// Process safety: worker and parent call them on shared memory; the worker may die before or after any of them.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <muster/queue/detail/slot_word.hpp>

namespace muster {

/// How many calls of its tasks a worker can have under way. What comes beyond is run by the caller at once.
inline constexpr std::size_t requests_per_worker = 32;

/// A completion ring's entry means a request cell when its `slot` is this or more.
inline constexpr std::uint16_t first_request_entry = 0x8000;

enum class cell_state : std::uint8_t { free, requested, accepted, posted, answered };

enum class cell_flag : std::uint8_t {
  none = 0,
  waiter = 1,           ///< the worker sleeps on this word: wake it
  abandoned = 2,        ///< the worker wants no answer: make the cell free instead
  block_arguments = 4,  ///< the arguments lie in a block, which is lent
  failed = 8,           ///< answered: the reply is an error
  block_reply = 16,     ///< answered: the reply lies in a block, which the parent keeps until the cell is free
};

[[nodiscard]] constexpr cell_flag operator|(cell_flag a, cell_flag b) noexcept {
  return static_cast<cell_flag>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}

/// The authoritative word of a request cell: `{generation:52, flags:8, state:4}`. Its lower half is the futex.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class cell_word {
public:
  constexpr cell_word() noexcept = default;
  constexpr explicit cell_word(std::uint64_t bits) noexcept : bits_(bits) {}
  constexpr cell_word(std::uint64_t generation, cell_flag flags, cell_state state) noexcept
      : bits_(generation << 12U | flag_bits(flags) | static_cast<std::uint64_t>(state)) {}

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr std::uint64_t generation() const noexcept { return bits_ >> 12U; }
  [[nodiscard]] constexpr cell_flag flags() const noexcept { return static_cast<cell_flag>(bits_ >> 4U & 0xffU); }
  [[nodiscard]] constexpr bool has(cell_flag flag) const noexcept { return (bits_ & flag_bits(flag)) != 0; }
  /// A value that is no state is possible in a corrupted word only.
  [[nodiscard]] constexpr cell_state state() const noexcept { return static_cast<cell_state>(bits_ & 0xfU); }
  [[nodiscard]] constexpr bool is_with_parent() const noexcept {
    return state() == cell_state::accepted || state() == cell_state::posted;
  }

  [[nodiscard]] static constexpr std::uint64_t flag_bits(cell_flag flags) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(flags)} << 4U;
  }

  friend constexpr bool operator==(const cell_word&, const cell_word&) noexcept = default;

private:
  std::uint64_t bits_ = 0;
};

/// One call of a task to its own pool. The first line is written by the worker until the parent has accepted the
/// request, the second by the parent.
struct alignas(64) request_cell {
  static constexpr std::size_t argument_bytes = 48;
  static constexpr std::size_t reply_room = 56;

  std::atomic<std::uint64_t> word;
  std::uint64_t token;  ///< the function; once posted: {generation:32, slot:16} of the task
  alignas(16) std::array<std::byte, argument_bytes> arguments;

  alignas(64) std::array<std::byte, reply_room> reply;  ///< or the reference to its block
  std::uint64_t reply_bytes;
};
static_assert(sizeof(request_cell) == 128);

namespace cell_protocol {

template <class Word>
[[nodiscard]] cell_word read(const Word& word) noexcept {
  return cell_word(word.load(std::memory_order_acquire));
}

/// Release: who accepts the request sees its arguments.
template <class Word>
void publish(Word& word, std::uint64_t generation, cell_flag flags) noexcept {
  word.store(cell_word(generation, flags, cell_state::requested).bits(), std::memory_order_release);
}

/// Goes on to the state that `next(word)` gives, as long as it gives one; returns the word as it was.
template <class Word, class Next>
std::optional<cell_word> change(Word& word, Next next) noexcept {
  auto found = read(word);
  for (;;) {
    const std::optional<cell_word> wanted = next(found);
    if (!wanted) return std::nullopt;
    auto expected = found.bits();
    if (word.compare_exchange_weak(expected, wanted->bits(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return found;
    }
    found = cell_word(expected);
  }
}

/// From one state to another, keeping the flags.
template <class Word>
std::optional<cell_word> pass_on(Word& word, std::uint64_t generation, cell_state from, cell_state to) noexcept {
  return change(word, [&](const cell_word& found) -> std::optional<cell_word> {
    if (found.generation() != generation || found.state() != from) return std::nullopt;
    return cell_word(generation, found.flags(), to);
  });
}

/// False when the parent was faster.
template <class Word>
[[nodiscard]] bool try_take_back(Word& word, std::uint64_t generation) noexcept {
  return pass_on(word, generation, cell_state::requested, cell_state::free).has_value();
}

/// Nothing when there is no request (any more).
template <class Word>
[[nodiscard]] std::optional<cell_word> try_accept(Word& word) noexcept {
  return change(word, [](const cell_word& found) -> std::optional<cell_word> {
    if (found.state() != cell_state::requested) return std::nullopt;
    return cell_word(found.generation(), found.flags(), cell_state::accepted);
  });
}

/// Publishes the reply, or frees the cell if nobody wants it; returns the word as it was. Nothing when the word is not
/// that of this request: somebody has overwritten it.
template <class Word>
std::optional<cell_word> answer(Word& word, std::uint64_t generation, cell_flag reply) noexcept {
  return change(word, [&](const cell_word& found) -> std::optional<cell_word> {
    if (found.generation() != generation || !found.is_with_parent()) return std::nullopt;
    if (found.has(cell_flag::abandoned)) return cell_word(generation, cell_flag::none, cell_state::free);
    return cell_word(generation, reply, cell_state::answered);
  });
}

/// Tells the parent something; returns the word as it was.
template <class Word>
cell_word request(Word& word, cell_flag flag) noexcept {
  return cell_word(word.fetch_or(cell_word::flag_bits(flag), std::memory_order_acq_rel));
}

/// Makes the cell free: its reply was read, or its worker is dead.
template <class Word>
void retire(Word& word, std::uint64_t generation) noexcept {
  word.store(cell_word(generation, cell_flag::none, cell_state::free).bits(), std::memory_order_release);
}

}  // namespace cell_protocol

}  // namespace muster
