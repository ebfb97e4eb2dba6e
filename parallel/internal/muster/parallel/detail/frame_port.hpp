// SPDX-License-Identifier: BSL-1.0
#pragma once

// Frames in a world's shared memory: written by one side, read by the others while the writer keeps what they name.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>

#include <muster/memory/detail/arena.hpp>
#include <muster/parallel/detail/world_memory.hpp>
#include <muster/serialize/archive.hpp>

namespace muster::detail {

/// Names blocks for those who borrow them. The writer keeps the values until the readers are done.
class naming_sink final : public attachment_sink {
public:
  explicit naming_sink(arena& memory) noexcept : memory_(memory) {}
  [[nodiscard]] std::uint64_t attach(const shared_block& what) override { return memory_.name_of(what); }

private:
  arena& memory_;
};

/// Borrows the blocks that a frame names.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class borrowing_source final : public attachment_source {
public:
  explicit borrowing_source(arena& memory) noexcept : memory_(memory) {}

  /// Throws errc::corrupted when there is no such block (any more).
  [[nodiscard]] shared_block take(std::uint64_t name) override;
  /// The blocks will not be lent any longer: handles that somebody has kept are made good for themselves.
  /// Throws errc::out_of_memory when that cannot be; then those handles must not be used.
  void end();
  /// The same, when nobody has kept one, or will use it.
  void forget() noexcept { count_ = 0; }

private:
  arena& memory_;
  std::deque<shared_block> borrowed_;  // what they have allocated is used again
  std::size_t count_ = 0;
};

/// Makes holds of this process's own on the blocks that a frame names.
class keeping_source final : public attachment_source {
public:
  explicit keeping_source(arena& memory) noexcept : memory_(memory) {}
  /// Throws errc::corrupted when there is no such block, errc::out_of_memory when it cannot be held.
  [[nodiscard]] shared_block take(std::uint64_t name) override;

private:
  arena& memory_;
};

/// The writer's end of an area, whose readers look at a word beside it all the time: with each look they take its line
/// away. So a short frame is put together elsewhere, and copied there when all else that comes before the word is done.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
/// Lifetime: borrows the arena. A frame is there until the next one is written.
class frame_outbox {
public:
  explicit frame_outbox(arena& memory) noexcept : memory_(memory) {}

  /// Makes a frame for `area` of what `write` writes, which is called twice, with a Writer: output_archive, or
  /// frame_writer where all values encode themselves. Throws errc::out_of_memory, and what `write` throws; there is no
  /// frame then.
  template <class Writer = output_archive, std::size_t Bytes, std::invocable<Writer&> Write>
  void prepare(frame_area<Bytes>& area, const Write& write) {
    bytes_ = 0;
    block_ = 0;
    Writer counter(true);
    write(counter);
    naming_sink names(memory_);
    const auto where = room(area.here, counter.written());
    Writer out(where, &names);
    write(out);
    bytes_ = where.size();
    is_staged_ = where.data() == staged_.data();
    if (is_staged_ && bytes_ > with_word) {
      std::memcpy(&area.here[with_word], &staged_[with_word], bytes_ - with_word);
    }
    block_ = overflow_ ? memory_.name_of(overflow_) : 0;
  }
  /// Puts it there. Requires: prepare(area, …) came before.
  template <std::size_t Bytes>
  void show(frame_area<Bytes>& area) noexcept {
    if (is_staged_) std::memcpy(area.here, staged_.data(), std::min(bytes_, with_word));
    area.bytes = bytes_;
    area.block = block_;
  }
  /// Both.
  template <class Writer = output_archive, std::size_t Bytes, std::invocable<Writer&> Write>
  void put(frame_area<Bytes>& area, const Write& write) {
    prepare<Writer>(area, write);
    show(area);
  }

private:
  // So much of a frame lies in the line of the word; what lies behind it nobody looks at, and is there early.
  static constexpr std::size_t with_word = 32;

  [[nodiscard]] std::span<std::byte> room(std::span<std::byte> here, std::size_t bytes);

  alignas(frame_alignment) std::array<std::byte, 256> staged_;
  std::size_t bytes_ = 0;
  std::uint64_t block_ = 0;
  bool is_staged_ = true;
  arena& memory_;
  shared_block overflow_;  // for frames that have no room in the area
};

/// The bytes of a frame. Each field of the area is read once.
/// Throws errc::corrupted when what stands there can be no frame.
class frame_view {
public:
  template <std::size_t Bytes>
  frame_view(arena& memory, const frame_area<Bytes>& area)
      : frame_view(memory, area.here, *static_cast<const volatile std::uint64_t*>(&area.block),
                   *static_cast<const volatile std::uint64_t*>(&area.bytes)) {}

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

private:
  frame_view(arena& memory, std::span<const std::byte> here, std::uint64_t block, std::uint64_t bytes);

  shared_block block_;
  std::span<const std::byte> bytes_;
};

}  // namespace muster::detail
