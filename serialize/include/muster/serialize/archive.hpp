// SPDX-License-Identifier: BSL-1.0
#pragma once

// cereal archives straight into and out of a span of bytes: a slot's line or a block. No stream, no string between.
//
// The format is cereal's binary one with three differences: sizes are checked against what is left before anything is
// allocated, contiguous ranges of trivially copyable elements are one aligned copy, and trivially copyable classes
// without a serialize function are copied as they are. Sender and receiver are the same build, so there is no version
// and no byte order in it. Layout: docs/formats/frame.md.
//
// All containers of the standard library that cereal knows are included.

#include <array>
#include <bitset>
#include <chrono>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <cereal/archives/binary.hpp>
#include <cereal/cereal.hpp>
#include <cereal/types/array.hpp>
#include <cereal/types/atomic.hpp>
#include <cereal/types/bitset.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/common.hpp>
#include <cereal/types/complex.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/forward_list.hpp>
#include <cereal/types/functional.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/polymorphic.hpp>
#include <cereal/types/queue.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/stack.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/valarray.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

#include <muster/serialize/error_code.hpp>
#include <muster/serialize/frame_stream.hpp>
#include <muster/serialize/holds_pointers.hpp>
#include <muster/serialize/max_value_bytes.hpp>

namespace muster {

namespace detail {

/// What cereal takes apart, or refuses, before it asks which function to call.
template <class T>
inline constexpr bool is_known_to_cereal = refers_elsewhere<T>;
template <class T>
inline constexpr bool is_known_to_cereal<cereal::base_class<T>> = true;
template <class T>
inline constexpr bool is_known_to_cereal<cereal::virtual_base_class<T>> = true;
template <class T>
inline constexpr bool is_known_to_cereal<cereal::DeferredData<T>> = true;

/// Asked of each part that a serialize function hands to an archive. In a function of its own, so that the compiler's
/// message leads with the sentence and the type; false, so that none of cereal's own come after it.
template <class T, bool IsKnown>
consteval bool require_part() {
  static_assert(
      !refers_elsewhere<T>,
      "muster: a serialize() function has a part that is a pointer, view or reference, which means nothing in "
      "another process: send the value itself (std::string instead of std::string_view, std::unique_ptr or "
      "std::shared_ptr instead of a pointer)");
  static_assert(IsKnown,
                "muster: a serialize() function has a part of a type that cannot be sent to another process: give that "
                "type one cereal serialize() function (or save() and load()), or make it trivially copyable");
  require_fitting_elements<T>();
  return IsKnown && !refers_elsewhere<T> && has_fitting_elements<T>();
}

}  // namespace detail

/// Writes values by their cereal functions.
///
/// Thread safety: as frame_writer.
class output_archive : public frame_writer, public cereal::OutputArchive<output_archive> {
public:
  /// Counts only. `attaches`: as the encoding will.
  explicit output_archive(bool attaches = false) : frame_writer(attaches), OutputArchive(this) {}
  /// Requires: `room` begins aligned to frame_alignment. Lifetime: borrows `room` and `attachments`.
  explicit output_archive(std::span<std::byte> room, attachment_sink* attachments = nullptr)
      : frame_writer(room, attachments), OutputArchive(this) {}

  /// cereal's, with one sentence from the compiler about what cannot be sent.
  template <class... Ts>
  output_archive& operator()(Ts&&... values) {
    if constexpr ((detail::require_part<std::remove_cvref_t<Ts>, writes<std::remove_cvref_t<Ts>>>() && ...)) {
      OutputArchive::operator()(std::forward<Ts>(values)...);
    }
    return *this;
  }
  template <class T>
  output_archive& operator&(T&& value) {
    return (*this)(std::forward<T>(value));
  }
  template <class T>
  output_archive& operator<<(T&& value) {
    return (*this)(std::forward<T>(value));
  }

private:
  template <class T>
  static constexpr bool writes =
      detail::is_known_to_cereal<T> || cereal::traits::is_output_serializable<T, output_archive>::value;
};

/// Reads values by their cereal functions.
///
/// Thread safety: as frame_reader.
class input_archive : public frame_reader, public cereal::InputArchive<input_archive> {
public:
  /// Requires: `bytes` begins aligned to frame_alignment. Lifetime: borrows `bytes` and `attachments`.
  explicit input_archive(std::span<const std::byte> bytes, attachment_source* attachments = nullptr)
      : frame_reader(bytes, attachments), InputArchive(this) {}

  /// cereal's, with one sentence from the compiler about what cannot be sent.
  template <class... Ts>
  input_archive& operator()(Ts&&... values) {
    if constexpr ((detail::require_part<std::remove_cvref_t<Ts>, reads<std::remove_cvref_t<Ts>>>() && ...)) {
      InputArchive::operator()(std::forward<Ts>(values)...);
    }
    return *this;
  }
  template <class T>
  input_archive& operator&(T&& value) {
    return (*this)(std::forward<T>(value));
  }
  template <class T>
  input_archive& operator>>(T&& value) {
    return (*this)(std::forward<T>(value));
  }

private:
  template <class T>
  static constexpr bool reads =
      detail::is_known_to_cereal<T> || cereal::traits::is_input_serializable<T, input_archive>::value;
};

namespace detail {

// A container of elements that are encoded in no bytes at all may have more elements than bytes are left, but a
// forged size must not make the receiver allocate without bound.
inline constexpr std::uint64_t always_believable_count = 4096;

template <class T>
concept elsewhere_serializable = cereal::traits::is_output_serializable<T, cereal::BinaryOutputArchive>::value;

template <class T>
concept has_serialize_members = cereal::traits::has_member_serialize<T, output_archive>::value ||
                                cereal::traits::has_member_save<T, output_archive>::value ||
                                cereal::traits::has_member_save_minimal<T, output_archive>::value;

/// Classes that are nothing but their bytes, and for which nobody wrote a serialize function.
template <class T>
concept plain_class =
    (std::is_class_v<T> || std::is_union_v<T>) && std::is_trivially_copyable_v<T> && std::move_constructible<T> &&
    !refers_elsewhere<T> && !holds_pointers<T> && !has_serialize_members<T> && !elsewhere_serializable<T>;

/// Standard types for which cereal has functions, but which may as well be copied as bytes if their parts may.
template <class T>
inline constexpr bool plain_standard_class = false;

/// Types that are nothing but their bytes. A class with serialize functions of its own is not: they may know better.
template <class T>
concept plain_type = std::is_arithmetic_v<T> || std::is_enum_v<T> || plain_class<T> || plain_standard_class<T>;

template <plain_type T, std::size_t N>
inline constexpr bool plain_standard_class<std::array<T, N>> = !std::is_same_v<T, bool>;
template <plain_type T>
inline constexpr bool plain_standard_class<std::complex<T>> = true;
template <class Rep, class Period>
inline constexpr bool plain_standard_class<std::chrono::duration<Rep, Period>> = std::is_arithmetic_v<Rep>;
template <class Clock, class Duration>
inline constexpr bool plain_standard_class<std::chrono::time_point<Clock, Duration>> = plain_standard_class<Duration>;
template <std::size_t N>
inline constexpr bool plain_standard_class<std::bitset<N>> = true;

/// Elements whose contiguous ranges are one copy.
template <class T>
concept bulk_element = plain_type<T> && !std::is_same_v<T, bool> && alignof(T) <= frame_alignment;

}  // namespace detail

// What follows are the functions that cereal looks up for these archives.

template <class T>
  requires std::is_arithmetic_v<T>
void CEREAL_SAVE_FUNCTION_NAME(output_archive& archive, const T& value) {
  archive.write(&value, sizeof value);
}

template <class T>
  requires std::is_arithmetic_v<T>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& archive, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = *archive.take(1) != std::byte{0};  // a forged byte makes a bool, not undefined behaviour
  } else {
    archive.read(&value, sizeof value);
  }
}

// The archive's type is deduced and compared first, because plain_class asks cereal about another archive, and that
// look-up must not come back here.
template <std::same_as<output_archive> Archive, class T>
  requires detail::plain_class<T>
void CEREAL_SAVE_FUNCTION_NAME(Archive& archive, const T& value) {
  archive.write(&value, sizeof value);
}

template <std::same_as<input_archive> Archive, class T>
  requires detail::plain_class<T>
void CEREAL_LOAD_FUNCTION_NAME(Archive& archive, T& value) {
  archive.read(&value, sizeof value);
}

template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(output_archive& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}

template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(input_archive& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}

template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(output_archive& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
}

template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(input_archive& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
  if (tag.size > detail::always_believable_count) archive.expect(tag.size, 1);
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(output_archive& archive, const cereal::BinaryData<T>& data) {
  archive.write(data.data, static_cast<std::size_t>(data.size));
}

template <class T>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& archive, cereal::BinaryData<T>& data) {
  archive.read(data.data, static_cast<std::size_t>(data.size));
}

template <detail::bulk_element T, class Allocator>
void CEREAL_SAVE_FUNCTION_NAME(output_archive& archive, const std::vector<T, Allocator>& values) {
  const std::uint64_t count = values.size();
  archive.write(&count, sizeof count);
  archive.align(alignof(T));
  archive.write(values.data(), count * sizeof(T));
}

template <detail::bulk_element T, class Allocator>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& archive, std::vector<T, Allocator>& values) {
  std::uint64_t count = 0;
  archive.read(&count, sizeof count);
  archive.align(alignof(T));
  archive.expect(count, sizeof(T));
  const auto* first = reinterpret_cast<const T*>(archive.take(count * sizeof(T)));
  values.assign(first, first + count);  // one pass: resize-then-read would zero the memory first
}

inline void CEREAL_SAVE_FUNCTION_NAME(output_archive& archive, const std::filesystem::path& path) {
  archive(path.native());
}

inline void CEREAL_LOAD_FUNCTION_NAME(input_archive& archive, std::filesystem::path& path) {
  std::filesystem::path::string_type text;
  archive(text);
  path = std::move(text);
}

}  // namespace muster

CEREAL_REGISTER_ARCHIVE(muster::output_archive)
CEREAL_REGISTER_ARCHIVE(muster::input_archive)
CEREAL_SETUP_ARCHIVE_TRAITS(muster::input_archive, muster::output_archive)
