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
#include <map>
#include <optional>
#include <set>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
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

#include <muster/serialize/detail/depth_guard.hpp>
#include <muster/serialize/detail/inherited_functions.hpp>
#include <muster/serialize/detail/plain_members.hpp>
#include <muster/serialize/detail/refusal.hpp>
#include <muster/serialize/error_code.hpp>
#include <muster/serialize/frame_stream.hpp>
#include <muster/serialize/holds_pointers.hpp>
#include <muster/serialize/max_value_bytes.hpp>
#include <muster/serialize/plain_bytes.hpp>

namespace muster {

namespace detail {

/// What cereal takes apart before it asks which function to call.
template <class T>
inline constexpr bool is_cereal_wrapper = false;
template <class T>
inline constexpr bool is_cereal_wrapper<cereal::base_class<T>> = true;
template <class T>
inline constexpr bool is_cereal_wrapper<cereal::virtual_base_class<T>> = true;
template <class T>
inline constexpr bool is_cereal_wrapper<cereal::DeferredData<T>> = true;

/// Why a value of type T cannot be written, or read, by the archive, its elements aside.
template <class T, bool IsKnown>
consteval refusal refusal_of_part();

/// Asked of each part that a serialize function hands to an archive; false where that does not compile, so that none of
/// cereal's messages come after the sentence.
template <class T, bool IsKnown>
consteval bool require_part() {
  if constexpr (is_cereal_wrapper<T>) {
    return true;
  } else {
    constexpr auto why = refusal_of_part<T, IsKnown>();
    require_accepted<T, why>();
    require_fitting_elements<T>();
    return why == refusal::none && has_fitting_elements<T>();
  }
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
      const detail::depth_guard level(depth_);
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
      detail::is_cereal_wrapper<T> || cereal::traits::is_output_serializable<T, output_archive>::value;

  std::size_t depth_ = 0;
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
      const detail::depth_guard level(depth_);
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
      detail::is_cereal_wrapper<T> || cereal::traits::is_input_serializable<T, input_archive>::value;

  std::size_t depth_ = 0;
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

/// Engines and distributions of <random>, whose members are private.
template <class T>
concept plain_random = is_standard_class<T> && requires { typename T::result_type; } &&
                       (requires { T::default_seed; } || requires { typename T::param_type; });

/// Whether its bytes mean the same in another process, as far as the compiler sees or has been told.
template <class T>
consteval bool has_plain_bytes() {
  if constexpr (is_plain_bytes<T> || std::is_empty_v<T> || plain_random<T>) {
    return true;
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    return has_plain_members<T>();
  } else {
    return false;
  }
}

/// Classes that are nothing but their bytes, and for which nobody wrote a serialize function.
template <class T>
concept plain_class = (std::is_class_v<T> || std::is_union_v<T>) && std::is_trivially_copyable_v<T> &&
                      std::move_constructible<T> && !refers_elsewhere<T> && !holds_pointers<T> &&
                      !has_serialize_members<T> && !elsewhere_serializable<T> && has_plain_bytes<T>();

/// Standard types for which cereal has functions, but which may as well be copied as bytes if their parts may.
template <class T>
inline constexpr bool plain_standard_class = false;

__extension__ using widest_signed = __int128;
__extension__ using widest_unsigned = unsigned __int128;

/// Also where the standard does not count those of 128 bits, with -std=c++20.
template <class T>
concept plain_number = std::is_arithmetic_v<T> || std::same_as<std::remove_cv_t<T>, widest_signed> ||
                       std::same_as<std::remove_cv_t<T>, widest_unsigned>;

/// Types that are nothing but their bytes. A class with serialize functions of its own is not: they may know better.
template <class T>
concept plain_type = plain_number<T> || std::is_enum_v<T> || plain_class<T> || plain_standard_class<T>;

/// Members whose bytes mean the same in another process, though by themselves they are sent by cereal's functions.
template <class T>
inline constexpr bool plain_as_member = false;
template <>
inline constexpr bool plain_as_member<std::monostate> = true;
template <class T>
inline constexpr bool plain_as_member<std::optional<T>> = std::is_trivially_copyable_v<T> && is_plain_type<T>();
template <class... Ts>
inline constexpr bool plain_as_member<std::variant<Ts...>> =
    ((std::is_trivially_copyable_v<Ts> && is_plain_type<Ts>()) && ...);

template <class T>
consteval bool is_plain_type() {
  return plain_type<T> || plain_as_member<std::remove_cv_t<T>>;
}

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
  requires detail::plain_number<T>
void CEREAL_SAVE_FUNCTION_NAME(output_archive& archive, const T& value) {
  archive.write(&value, sizeof value);
}

template <class T>
  requires detail::plain_number<T>
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

namespace detail {

template <class T, bool IsKnown>
consteval refusal refusal_of_part() {
  if constexpr (refers_elsewhere<T>) {
    return refusal::pointer;
  } else if constexpr (plain_type<T>) {  // NOLINT(bugprone-branch-clone): asked in this order
    return refusal::none;
  } else if constexpr (has_state_beside_elements<T>) {
    return refusal::stateful;
  } else if constexpr (is_cut<T, output_archive>()) {
    return refusal::inherited;
  } else if constexpr (IsKnown) {
    return refusal::none;
  } else {
    return refusal_of_unknown<T>();
  }
}

}  // namespace detail

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

// Not where the program has functions of its own for paths.
template <std::same_as<output_archive> Archive, std::same_as<std::filesystem::path> Path>
  requires(!detail::elsewhere_serializable<Path>)
void CEREAL_SAVE_FUNCTION_NAME(Archive& archive, const Path& path) {
  archive(path.native());
}

template <std::same_as<input_archive> Archive, std::same_as<std::filesystem::path> Path>
  requires(!detail::elsewhere_serializable<Path>)
void CEREAL_LOAD_FUNCTION_NAME(Archive& archive, Path& path) {
  typename Path::string_type text;
  archive(text);
  path = std::move(text);
}

// cereal inserts each element before its hint, which puts equal keys into the opposite order.

namespace detail {

/// Before which the next element is inserted. A tree puts it right before its hint; a hash table puts it behind the
/// hint if that has the same key.
template <class Container, class Last>
Last hint_after(const Container& values, Last last) {
  if constexpr (requires { typename Container::hasher; }) {
    return last;
  } else {
    return values.end();
  }
}

/// `insert_next(hint)` reads an element, inserts it and returns where it is.
template <class Container, class Insert>
void load_in_order(input_archive& archive, Container& values, const Insert& insert_next) {
  cereal::size_type count = 0;
  archive(cereal::make_size_tag(count));
  values.clear();
  typename Container::const_iterator last = values.end();
  for (cereal::size_type i = 0; i < count; ++i) last = insert_next(hint_after(values, last));
}

template <class Container>
void load_pairs(input_archive& archive, Container& values) {
  load_in_order(archive, values, [&](auto hint) {
    typename Container::key_type key{};
    typename Container::mapped_type value{};
    archive(cereal::make_map_item(key, value));
    return values.emplace_hint(hint, std::move(key), std::move(value));
  });
}

template <class Container>
void load_keys(input_archive& archive, Container& values) {
  load_in_order(archive, values, [&](auto hint) {
    typename Container::key_type key{};
    archive(key);
    return values.emplace_hint(hint, std::move(key));
  });
}

}  // namespace detail

template <class K, class V, class C, class A>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& archive, std::multimap<K, V, C, A>& values) {
  detail::load_pairs(archive, values);
}
template <class K, class V, class H, class E, class A>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& archive, std::unordered_multimap<K, V, H, E, A>& values) {
  detail::load_pairs(archive, values);
}
template <class K, class C, class A>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& archive, std::multiset<K, C, A>& values) {
  detail::load_keys(archive, values);
}
template <class K, class H, class E, class A>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& archive, std::unordered_multiset<K, H, E, A>& values) {
  detail::load_keys(archive, values);
}

}  // namespace muster

CEREAL_REGISTER_ARCHIVE(muster::output_archive)
CEREAL_REGISTER_ARCHIVE(muster::input_archive)
CEREAL_SETUP_ARCHIVE_TRAITS(muster::input_archive, muster::output_archive)
