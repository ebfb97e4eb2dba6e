// SPDX-License-Identifier: BSL-1.0
#pragma once

// cereal archives straight into and out of a span of bytes: a slot's line or a block. No stream, no string between.
//
// The format is cereal's binary one with three differences: sizes are checked against what is left before anything is
// allocated, contiguous ranges of trivially copyable elements are one aligned copy, and trivially copyable classes
// without a serialize function are copied as they are. Sender and receiver are the same build, so there is no version
// and no byte order in it. Layout: docs/formats/frame.md.
//
// Values of the standard library are sent by muster's own functions, which find them by their form: so no header of
// cereal's types is needed, nor does it matter whether one is included. Two kinds of owning pointers are cereal's:
// those to classes with virtual functions, and to classes with load_and_construct(). A program that sends such a
// pointer includes <cereal/types/polymorphic.hpp>.

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <cereal/cereal.hpp>

#include <muster/serialize/detail/depth_guard.hpp>
#include <muster/serialize/detail/frame_stream.hpp>
#include <muster/serialize/detail/inherited_functions.hpp>
#include <muster/serialize/detail/plain_type.hpp>
#include <muster/serialize/detail/refusal.hpp>
#include <muster/serialize/detail/standard_form.hpp>
#include <muster/serialize/detail/standard_values.hpp>
#include <muster/serialize/error_code.hpp>
#include <muster/serialize/holds_pointers.hpp>
#include <muster/serialize/max_value_bytes.hpp>

namespace muster {

class input_archive;
class output_archive;

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

/// Owners that only cereal's functions can send: the real class of the object is registered with cereal, or it is
/// constructed from what is read.
template <class T>
consteval bool is_sent_by_cereal() {
  if constexpr (owning_pointer<T>) {
    using object = std::remove_cv_t<typename T::element_type>;
    if constexpr (std::is_polymorphic_v<object>) return true;
    return cereal::traits::has_load_and_construct<object, input_archive>::value;
  } else {
    return false;
  }
}

/// Types that have a form, or are plain, so that muster's own functions send them.
template <class T>
concept sent_by_form = plain_type<T> || (standard_form_of<T> != standard_form::none && !is_sent_by_cereal<T>());

/// Types for which cereal finds a function.
template <class T>
concept written_by_cereal = is_cereal_wrapper<T> || cereal::traits::is_output_serializable<T, output_archive>::value;
template <class T>
concept read_by_cereal = is_cereal_wrapper<T> || cereal::traits::is_input_serializable<T, input_archive>::value;

/// Classes that are derived from one of the standard library, and for which cereal finds no function.
template <class T>
concept sent_as_base = std::is_class_v<T> && !std::is_void_v<standard_base_of<T>> &&
                       !std::same_as<standard_base_of<T>, T> && sent_by_form<standard_base_of<T>>;

template <class T>
concept writable = sent_by_form<T> || written_by_cereal<T> || sent_as_base<T>;
template <class T>
concept readable = sent_by_form<T> || read_by_cereal<T> || sent_as_base<T>;

/// Why a value of type T cannot be sent, its elements aside. `is_known`: whether there is a function for it.
template <class T, class IsKnown>
consteval refusal refusal_of_part(IsKnown is_known) {
  if constexpr (refers_elsewhere<T>) {
    return refusal::pointer;
  } else if constexpr (plain_type<T>) {  // NOLINT(bugprone-branch-clone): asked in this order
    return refusal::none;
  } else if constexpr (has_state_beside_elements<T>) {
    return refusal::stateful;
  } else if constexpr (is_cut<T, output_archive>()) {
    return refusal::inherited;
  } else if constexpr (is_known.template operator()<T>()) {
    return refusal::none;
  } else if constexpr (has_own_deleter<T>) {
    return refusal::deleter;
  } else if constexpr (owning_pointer<T>) {
    return refusal::owner_of_class;
  } else {
    return refusal_of_unknown<T>();
  }
}

/// Asked of each part that a serialize function hands to an archive; false where that does not compile, so that none of
/// cereal's messages come after the sentence.
template <class T, class IsKnown>
consteval bool require_part(IsKnown is_known) {
  if constexpr (is_cereal_wrapper<T>) {
    return true;
  } else {
    constexpr auto why = refusal_of_part<T>(is_known);
    require_accepted<T, why>();
    require_fitting_elements<T>();
    return why == refusal::none && has_fitting_elements<T>();
  }
}

inline constexpr auto is_written = []<class T>() { return writable<T>; };
inline constexpr auto is_read = []<class T>() { return readable<T>; };

}  // namespace detail

/// Writes values: those of the standard library by their form (detail/standard_values.hpp), plain ones as their bytes,
/// others by their cereal functions.
///
/// Thread safety: as frame_writer.
class output_archive : public frame_writer, public cereal::OutputArchive<output_archive> {
public:
  /// Counts only. `attaches`: as the encoding will.
  explicit output_archive(bool attaches = false);
  /// Requires: `room` begins aligned to frame_alignment. Lifetime: borrows `room` and `attachments`.
  explicit output_archive(std::span<std::byte> room, attachment_sink* attachments = nullptr);
  ~output_archive() noexcept override;

  /// cereal's, with one sentence from the compiler about what cannot be sent.
  ///@{
  template <class... Ts>
  output_archive& operator()(Ts&&... values) {
    if constexpr ((detail::require_part<std::remove_cvref_t<Ts>>(detail::is_written) && ...)) {
      const detail::depth_guard level(depth_);
      (put(values), ...);
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
  ///@}

  /// Whether an object that registerSharedPointer() has given this number follows, being the first one.
  static constexpr bool is_first_sight(std::uint32_t id) { return (id & cereal::detail::msb_32bit) != 0; }

private:
  template <class T>
  void put(T& value) {
    using type = std::remove_cv_t<T>;
    if constexpr (detail::plain_type<type>) {
      write(&value, sizeof value);
    } else if constexpr (detail::sent_by_form<type>) {
      detail::write_standard(*this, std::as_const(value));
    } else if constexpr (detail::written_by_cereal<type>) {
      OutputArchive::operator()(value);
    } else {
      put(static_cast<const detail::standard_base_of<type>&>(value));
    }
  }

  std::size_t depth_ = 0;
};

/// Reads values, as output_archive writes them.
///
/// Thread safety: as frame_reader.
class input_archive : public frame_reader, public cereal::InputArchive<input_archive> {
public:
  /// Requires: `bytes` begins aligned to frame_alignment. Lifetime: borrows `bytes` and `attachments`.
  explicit input_archive(std::span<const std::byte> bytes, attachment_source* attachments = nullptr);
  ~input_archive() noexcept override;

  /// cereal's, with one sentence from the compiler about what cannot be sent.
  ///@{
  template <class... Ts>
  input_archive& operator()(Ts&&... values) {
    if constexpr ((detail::require_part<std::remove_cvref_t<Ts>>(detail::is_read) && ...)) {
      const detail::depth_guard level(depth_);
      (take_into(values), ...);
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
  ///@}

  /// As output_archive's.
  static constexpr bool is_first_sight(std::uint32_t id) { return (id & cereal::detail::msb_32bit) != 0; }
  /// A new object, which is then read into; also where its default constructor is cereal's alone.
  template <class T>
  static T* make() {
    return cereal::access::construct<T>();
  }

private:
  template <class T>
  void take_into(T& value) {
    using type = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<type, bool>) {
      value = *take(1) != std::byte{0};  // a forged byte makes a bool, not undefined behaviour
    } else if constexpr (detail::plain_type<type>) {
      read(&value, sizeof value);
    } else if constexpr (detail::sent_by_form<type>) {
      detail::read_standard(*this, value);
    } else if constexpr (detail::read_by_cereal<type>) {
      InputArchive::operator()(value);
    } else {
      take_into(static_cast<detail::standard_base_of<type>&>(value));
    }
  }

  std::size_t depth_ = 0;
};

// What follows are the functions that cereal looks up for these archives: it hands some values to itself, such as bases
// and what save_minimal() has returned. Enumerations it knows. The archive's type is deduced and compared first, since
// plain_type asks cereal about another archive, and that look-up must not come back here.

template <std::same_as<output_archive> Archive, class T>
  requires(!std::is_enum_v<T> && detail::sent_by_form<T>)
void CEREAL_SAVE_FUNCTION_NAME(Archive& archive, const T& value) {
  archive(value);
}

template <std::same_as<input_archive> Archive, class T>
  requires(!std::is_enum_v<T> && detail::sent_by_form<T>)
void CEREAL_LOAD_FUNCTION_NAME(Archive& archive, T& value) {
  archive(value);
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

}  // namespace muster

CEREAL_REGISTER_ARCHIVE(muster::output_archive)
CEREAL_REGISTER_ARCHIVE(muster::input_archive)
CEREAL_SETUP_ARCHIVE_TRAITS(muster::input_archive, muster::output_archive)
