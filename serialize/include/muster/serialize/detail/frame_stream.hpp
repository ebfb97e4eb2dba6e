// SPDX-License-Identifier: BSL-1.0
#pragma once

// The bytes of a frame: what archives write into and read from, and what types use that encode themselves.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include <muster/serialize/detail/attachments.hpp>

namespace muster {

/// Encoded bytes must begin at an address aligned to this, and no element is aligned more strictly.
inline constexpr std::size_t frame_alignment = 16;

/// Writes into a span of known size, or only counts the bytes that would be written.
///
/// Encoding is done twice: once counting, once into exactly as much room. So a value must write the same bytes both
/// times.
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class frame_writer {
public:
  /// Counts only. `attaches`: as the encoding will.
  explicit frame_writer(bool attaches = false) noexcept : attaches_(attaches) {}
  /// Requires: `room` begins aligned to frame_alignment. Lifetime: borrows `room` and `attachments`.
  explicit frame_writer(std::span<std::byte> room, attachment_sink* attachments = nullptr) noexcept
      : room_(room), attachments_(attachments), attaches_(attachments != nullptr), counting_(false) {}

  /// Throws errc::not_serializable when the room is used up: the second encoding was longer than the first.
  void write(const void* data, std::size_t bytes) {
    if (!counting_) {
      if (bytes > room_.size() - written_) throw_no_room(bytes);
      if (bytes != 0) std::memcpy(room_.data() + written_, data, bytes);
    }
    written_ += bytes;
  }

  /// Whether nothing is written, only counted.
  [[nodiscard]] bool only_counts() const noexcept { return counting_; }
  /// As write(), for who knows how many bytes there will be. Requires: only_counts().
  void count(std::size_t bytes) noexcept { written_ += bytes; }

  /// Skips to the next multiple of `alignment`, writing zeros.
  void align(std::size_t alignment) {
    constexpr std::byte zeros[frame_alignment] = {};
    write(zeros, (alignment - written_ % alignment) % alignment);
  }

  /// Whether blocks can go along; else what they hold must be copied.
  [[nodiscard]] bool attaches() const noexcept { return attaches_; }
  /// Whether a value may be named by its block. Never where attaches() is false; where that alone is true, only what is
  /// one and the same thing for all processes (an event, a queue) may, and a value writes its content.
  [[nodiscard]] bool refers() const noexcept { return attaches_ && !copies_; }

  /// While it lives, values write their content.
  ///
  /// Thread safety: as frame_writer.
  class copying {
  public:
    explicit copying(frame_writer& out) noexcept : out_(out), before_(std::exchange(out.copies_, true)) {}
    copying(const copying&) = delete;
    copying& operator=(const copying&) = delete;
    ~copying() { out_.copies_ = before_; }

  private:
    frame_writer& out_;
    bool before_;
  };

  /// Sends a block along, and writes its name. Requires: attaches().
  /// Throws errc::not_serializable when the frame goes where none can follow, and what the carrier throws.
  void attach(const shared_block& what) {
    const std::uint64_t name = counting_ ? 0 : attachments().attach(what);
    write(&name, sizeof name);
    ++attached_;
  }

  [[nodiscard]] std::size_t written() const noexcept { return written_; }
  /// How many blocks go along.
  [[nodiscard]] std::size_t attached() const noexcept { return attached_; }

private:
  [[noreturn]] void throw_no_room(std::size_t bytes) const;
  [[nodiscard]] attachment_sink& attachments() const;

  std::span<std::byte> room_;
  attachment_sink* attachments_ = nullptr;
  std::size_t attached_ = 0;
  std::size_t written_ = 0;
  bool attaches_ = false;
  bool copies_ = false;
  bool counting_ = true;
};

/// Reads from a span; never past its end, whatever the bytes say.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class frame_reader {
public:
  /// Requires: `bytes` begins aligned to frame_alignment. Lifetime: borrows `bytes` and `attachments`.
  explicit frame_reader(std::span<const std::byte> bytes, attachment_source* attachments = nullptr) noexcept
      : bytes_(bytes), attachments_(attachments) {}

  /// Throws errc::not_serializable when fewer bytes are left.
  void read(void* data, std::size_t bytes) {
    const auto* found = take(bytes);
    if (bytes != 0) std::memcpy(data, found, bytes);
  }

  /// The next `bytes` bytes, in place. Throws errc::not_serializable when fewer are left.
  const std::byte* take(std::size_t bytes) {
    if (bytes > left()) throw_too_short(bytes);
    const auto* found = bytes_.data() + position_;
    position_ += bytes;
    return found;
  }

  void align(std::size_t alignment) { take((alignment - position_ % alignment) % alignment); }

  /// Checks that `count` elements of at least `element_bytes` bytes can still follow.
  /// Throws errc::not_serializable otherwise, before anybody allocates room for them.
  void expect(std::uint64_t count, std::size_t element_bytes) const {
    if (count > left() / element_bytes) throw_too_many(count);
  }

  /// The block whose name is next. Throws errc::not_serializable when none can have come along, errc::corrupted when
  /// that one has not.
  [[nodiscard]] shared_block take_attachment() {
    std::uint64_t name = 0;
    read(&name, sizeof name);
    return attachments().take(name);
  }

  /// Whether blocks that come along are lent by their sender until the running task has ended.
  [[nodiscard]] bool is_lent_for_task() const noexcept {
    return attachments_ != nullptr && attachments_->lends_for_task();
  }

  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - position_; }

private:
  [[nodiscard]] attachment_source& attachments() const;
  [[noreturn]] void throw_too_short(std::size_t bytes) const;
  [[noreturn]] void throw_too_many(std::uint64_t count) const;

  std::span<const std::byte> bytes_;
  attachment_source* attachments_ = nullptr;
  std::size_t position_ = 0;
};

/// Types that encode themselves, without cereal: a frame of nothing but such types spares the making of archives, which
/// have tables for shared pointers and polymorphic types (20 ns each, three for a call).
template <class T>
concept self_encoding = requires(const T& value, frame_writer& out, frame_reader& in) {
  value.write_to(out);
  { T::read_from(in) } -> std::same_as<T>;
};

}  // namespace muster
