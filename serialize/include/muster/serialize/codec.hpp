// SPDX-License-Identifier: BSL-1.0
#pragma once

// Encodes a list of values of known types as one frame, and decodes it again.

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <tuple>

#include <muster/serialize/transportable.hpp>

namespace muster {

namespace detail {

/// Throws errc::not_serializable.
[[noreturn]] void throw_short_frame(std::size_t bytes, std::size_t needed);

}  // namespace detail

/// The frame of the values `Ts...`, one after the other.
///
/// Where all are trivially transportable the frame has a fixed size and is a few copies; else it is an archive.
/// Thread safety: static functions only; safe.
template <transportable... Ts>
class codec {
public:
  static constexpr bool is_fixed = (trivially_transportable<Ts> && ...);
  static constexpr std::size_t fixed_bytes = (sizeof(Ts) + ... + 0);  ///< meaningful only where is_fixed

  [[nodiscard]] static std::size_t size(const Ts&... values) {
    if constexpr (is_fixed) {
      return fixed_bytes;
    } else {
      output_archive counter;
      (save(counter, values), ...);
      return counter.written();
    }
  }

  /// Requires: `room` has size(values...) bytes and begins aligned to frame_alignment.
  /// Throws errc::not_serializable when a serialize function wrote more than before, and whatever it throws itself.
  static void encode(std::span<std::byte> room, const Ts&... values) {
    if constexpr (is_fixed) {
      [[maybe_unused]] auto* at = room.data();
      ((std::memcpy(at, &values, sizeof values), at += sizeof values), ...);
    } else {
      output_archive out(room);
      (save(out, values), ...);
    }
  }

  /// Requires: `bytes` begins aligned to frame_alignment.
  /// Throws errc::not_serializable when the bytes do not hold these values, and whatever serialize functions throw.
  [[nodiscard]] static std::tuple<Ts...> decode(std::span<const std::byte> bytes) {
    if constexpr (is_fixed) {
      if (bytes.size() < fixed_bytes) detail::throw_short_frame(bytes.size(), fixed_bytes);
      [[maybe_unused]] const auto* at = bytes.data();
      return std::tuple<Ts...>{take<Ts>(at)...};  // braces: in this order
    } else {
      input_archive in(bytes);
      return std::tuple<Ts...>{load<Ts>(in)...};
    }
  }

private:
  template <class T>
  static T take(const std::byte*& at) {
    if constexpr (std::is_same_v<T, bool>) return *at++ != std::byte{0};
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), at, sizeof(T));
    at += sizeof(T);
    return std::bit_cast<T>(bytes);
  }

  template <class T>
  static void save(output_archive& out, const T& value) {
    if constexpr (trivially_transportable<T>) {
      out.write(&value, sizeof value);
    } else {
      out(value);
    }
  }

  template <class T>
  static T load(input_archive& in) {
    if constexpr (trivially_transportable<T>) {
      const auto* at = in.take(sizeof(T));
      return take<T>(at);
    } else {
      T value{};
      in(value);
      return value;
    }
  }
};

}  // namespace muster
