// SPDX-License-Identifier: BSL-1.0
#pragma once

// Encodes a list of values of known types as one frame, and decodes it again.

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeinfo>

#include <muster/serialize/transportable.hpp>

namespace muster {

namespace detail {

/// Throws errc::not_serializable.
[[noreturn]] void throw_short_frame(std::size_t bytes, std::size_t needed);
/// Throws errc::not_serializable if they differ: of an object that was given as its base, the rest would be lost.
void require_whole_object(const std::type_info& object, const std::type_info& sent);
/// Throws errc::not_serializable if a class was not registered with muster's archives; else the exception itself.
[[noreturn]] void throw_explained(const cereal::Exception& failure);

}  // namespace detail

/// The frame of the values `Ts...`, one after the other.
///
/// Where all are trivially transportable the frame has a fixed size and is a few copies; else it is an archive.
/// Thread safety: static functions only; safe.
template <detail::sendable_value... Ts>
class codec {
public:
  static constexpr bool is_fixed = (trivially_transportable<Ts> && ...);
  static constexpr std::size_t fixed_bytes = (sizeof(Ts) + ... + 0);  ///< meaningful only where is_fixed

  static constexpr bool is_direct = ((trivially_transportable<Ts> || self_encoding<Ts>) && ...);  ///< without cereal
  using writer = std::conditional_t<is_direct, frame_writer, output_archive>;
  using reader = std::conditional_t<is_direct, frame_reader, input_archive>;

  /// How much room a frame takes, and how many blocks go with it.
  struct extent {
    std::size_t bytes = 0;
    std::size_t attachments = 0;
  };

  /// Of a frame that no block goes with: what lies in shared memory is copied.
  [[nodiscard]] static std::size_t size(const Ts&... values) { return measure(false, values...).bytes; }
  /// Of a frame that blocks can go with; for encode_with().
  [[nodiscard]] static extent size_with(const Ts&... values) { return measure(true, values...); }

  /// Of either, as `attaches` says.
  [[nodiscard]] static extent measure(bool attaches, const Ts&... values) {
    if constexpr (is_fixed) {
      return {.bytes = fixed_bytes};
    } else {
      writer counter(attaches);
      (save(counter, values), ...);
      return {.bytes = counter.written(), .attachments = counter.attached()};
    }
  }

  /// Requires: `room` has size(values...) bytes and begins aligned to frame_alignment.
  /// Throws errc::not_serializable when a serialize function wrote more than before, and whatever it throws itself.
  static void encode(std::span<std::byte> room, const Ts&... values) { encode_with(room, nullptr, values...); }

  /// The same, for values that blocks may go along with.
  static void encode_with(std::span<std::byte> room, [[maybe_unused]] attachment_sink* attachments,
                          const Ts&... values) {
    if constexpr (is_fixed) {
      [[maybe_unused]] auto* at = room.data();
      ((std::memcpy(at, &values, sizeof values), at += sizeof values), ...);
    } else {
      writer out(room, attachments);
      (save(out, values), ...);
    }
  }

  /// Requires: `bytes` begins aligned to frame_alignment.
  /// Throws errc::not_serializable when the bytes do not hold these values, and whatever serialize functions throw.
  [[nodiscard]] static std::tuple<Ts...> decode(std::span<const std::byte> bytes,
                                                attachment_source* attachments = nullptr) {
    if constexpr (is_fixed) {
      if (bytes.size() < fixed_bytes) detail::throw_short_frame(bytes.size(), fixed_bytes);
      [[maybe_unused]] const auto* at = bytes.data();
      return std::tuple<Ts...>{take<Ts>(at)...};  // braces: in this order
    } else {
      reader in(bytes, attachments);
      return std::tuple<Ts...>{load<Ts>(in)...};
    }
  }

  /// Of a frame of one value. Made where the caller puts it: no copy is on the stack meanwhile.
  /// Requires and throws: as decode().
  [[nodiscard]] static auto decode_value(std::span<const std::byte> bytes, attachment_source* attachments = nullptr)
    requires(sizeof...(Ts) == 1)
  {
    using T = std::tuple_element_t<0, std::tuple<Ts...>>;
    if constexpr (is_fixed) {
      if (bytes.size() < fixed_bytes) detail::throw_short_frame(bytes.size(), fixed_bytes);
      const auto* at = bytes.data();
      return take<T>(at);
    } else {
      reader in(bytes, attachments);
      return load<T>(in);
    }
  }

private:
  template <class T>
  static T take(const std::byte*& at) {
    if constexpr (std::is_same_v<T, bool>) {
      return *at++ != std::byte{0};
    } else if constexpr (std::is_trivially_default_constructible_v<T>) {
      T value;
      std::memcpy(&value, at, sizeof value);
      at += sizeof value;
      return value;
    } else {
      std::array<std::byte, sizeof(T)> bytes;
      std::memcpy(bytes.data(), at, sizeof(T));
      at += sizeof(T);
      return std::bit_cast<T>(bytes);
    }
  }

  template <class T>
  static void save(writer& out, const T& value) {
    if constexpr (trivially_transportable<T>) {
      out.write(&value, sizeof value);
    } else if constexpr (self_encoding<T>) {
      value.write_to(out);
    } else {
      if constexpr (std::is_polymorphic_v<T>) detail::require_whole_object(typeid(value), typeid(T));
      try {
        out(value);
      } catch (const cereal::Exception& failure) {
        detail::throw_explained(failure);
      }
    }
  }

  template <class T>
  static T load(reader& in) {
    if constexpr (trivially_transportable<T>) {
      const auto* at = in.take(sizeof(T));
      return take<T>(at);
    } else if constexpr (self_encoding<T>) {
      return T::read_from(in);
    } else {
      T value{};
      try {
        in(value);
      } catch (const cereal::Exception& failure) {
        detail::throw_explained(failure);
      }
      return value;
    }
  }
};

}  // namespace muster
