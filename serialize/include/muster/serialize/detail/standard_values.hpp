// SPDX-License-Identifier: BSL-1.0
#pragma once

// How values of the standard library are written and read, form by form. The bytes are those of cereal's functions, but
// for rows of plain elements, which are one aligned copy (docs/formats/frame.md). An archive is a parameter, so that
// the header of the archives can include this one.
//
// Each function writes, or reads, one value.
// Thread safety: as the archive.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <muster/serialize/detail/plain_type.hpp>
#include <muster/serialize/detail/standard_containers.hpp>
#include <muster/serialize/detail/standard_form.hpp>
#include <muster/serialize/detail/standard_owners.hpp>

namespace muster::detail {

/// Throws errc::not_serializable.
[[noreturn]] void throw_valueless_variant();
/// Throws errc::not_serializable.
[[noreturn]] void throw_bad_alternative(std::int32_t index, std::size_t alternatives);

// ---- tuples

template <class Archive, class Tuple, std::size_t... Index>
void each_part(Archive& archive, Tuple& value, std::index_sequence<Index...> /*parts*/) {
  using std::get;
  (archive(get<Index>(value)), ...);
}
template <class Archive, class Tuple>
void each_part(Archive& archive, Tuple& value) {
  each_part(archive, value, std::make_index_sequence<std::tuple_size_v<std::remove_const_t<Tuple>>>());
}

// ---- optional, variant

template <class Archive, class T>
void write_optional(Archive& archive, const T& value) {
  const std::uint8_t is_empty = value.has_value() ? 0 : 1;
  archive.write(&is_empty, sizeof is_empty);
  if (value.has_value()) archive(*value);
}
template <class Archive, class T>
void read_optional(Archive& archive, T& value) {
  std::uint8_t is_empty = 0;
  archive.read(&is_empty, sizeof is_empty);
  value.reset();
  if (is_empty == 0) archive(value.emplace());
}

template <class... Ts>
consteval std::size_t count_of(type_list<Ts...> /*types*/) {
  return sizeof...(Ts);
}

/// get_if of <variant>, which is found as the class is its.
template <std::size_t Index, class T>
auto* alternative_in(T& value) {
  return get_if<Index>(std::addressof(value));
}

template <class Archive, class T, std::size_t... Index>
void write_variant(Archive& archive, const T& value, std::index_sequence<Index...> /*alternatives*/) {
  if (value.valueless_by_exception()) throw_valueless_variant();
  const auto chosen = static_cast<std::int32_t>(value.index());
  archive.write(&chosen, sizeof chosen);
  static_cast<void>(((value.index() == Index && (archive(*alternative_in<Index>(value)), true)) || ...));
}
template <class Archive, class T, std::size_t... Index>
void read_variant(Archive& archive, T& value, std::index_sequence<Index...> /*alternatives*/) {
  std::int32_t chosen = 0;
  archive.read(&chosen, sizeof chosen);
  const auto read_into = [&](auto& alternative) { return archive(alternative), true; };
  const bool found =
      ((chosen == static_cast<std::int32_t>(Index) && read_into(value.template emplace<Index>())) || ...);
  if (!found) throw_bad_alternative(chosen, sizeof...(Index));
}

/// Requires: T has a form, and is no plain type, nor a pointer that cereal must send.
template <class Archive, class T>
void write_standard(Archive& archive, const T& value) {
  constexpr auto form = standard_form_of<T>;
  using enum standard_form;
  if constexpr (form == array) write_elements(archive, value);
  if constexpr (form == tuple) each_part(archive, value);
  if constexpr (form == optional) write_optional(archive, value);
  if constexpr (form == variant)
    write_variant(archive, value, std::make_index_sequence<count_of(template_arguments<T>())>());
  if constexpr (form == text) write_text(archive, value);
  if constexpr (form == vector) {
    if constexpr (bulk_element<typename T::value_type>) {
      write_row(archive, value);
    } else {
      write_sequence(archive, value);
    }
  }
  if constexpr (form == sequence) write_sequence(archive, value);
  if constexpr (form == valarray) {
    write_count(archive, value.size());
    for (std::size_t i = 0; i < value.size(); ++i) archive(value[i]);
  }
  if constexpr (form == keyed) write_keyed(archive, value);
  if constexpr (form == adaptor) archive(opened<T>::container_in(value));
  if constexpr (form == complex) archive(value.real(), value.imag());
  if constexpr (form == duration) archive(value.count());
  if constexpr (form == time_point) archive(value.time_since_epoch());
  if constexpr (form == atomic) archive(value.load());
  if constexpr (form == path) write_text(archive, value.native());
  if constexpr (form == unique_owner) write_unique(archive, value);
  if constexpr (form == shared_owner) write_shared(archive, value);
  if constexpr (form == shared_observer) write_shared(archive, value.lock());
}

/// Reads a part that is then what a value is made from.
template <class Part, class Archive>
Part read_part(Archive& archive) {
  Part part{};
  archive(part);
  return part;
}

/// Requires: as write_standard().
template <class Archive, class T>
void read_standard(Archive& archive, T& value) {
  constexpr auto form = standard_form_of<T>;
  using enum standard_form;
  if constexpr (form == array) read_elements(archive, value);
  if constexpr (form == tuple) each_part(archive, value);
  if constexpr (form == optional) read_optional(archive, value);
  if constexpr (form == variant)
    read_variant(archive, value, std::make_index_sequence<count_of(template_arguments<T>())>());
  if constexpr (form == text) read_text(archive, value);
  if constexpr (form == vector) {
    if constexpr (bulk_element<typename T::value_type>) {
      read_row(archive, value);
    } else {
      read_sequence(archive, value);
    }
  }
  if constexpr (form == sequence) read_sequence(archive, value);
  if constexpr (form == valarray) {
    value.resize(read_count(archive));
    for (std::size_t i = 0; i < value.size(); ++i) archive(value[i]);
  }
  if constexpr (form == keyed) read_keyed(archive, value);
  if constexpr (form == adaptor) archive(opened<T>::container_in(value));
  if constexpr (form == complex) {
    const auto real = read_part<typename T::value_type>(archive);
    value = T(real, read_part<typename T::value_type>(archive));
  }
  if constexpr (form == duration) value = T(read_part<typename T::rep>(archive));
  if constexpr (form == time_point) value = T(read_part<typename T::duration>(archive));
  if constexpr (form == atomic) value.store(read_part<typename T::value_type>(archive));
  if constexpr (form == path) {
    typename T::string_type native;
    read_text(archive, native);
    value = std::move(native);
  }
  if constexpr (form == unique_owner) read_unique(archive, value);
  if constexpr (form == shared_owner) read_shared(archive, value);
  if constexpr (form == shared_observer) {
    std::shared_ptr<typename T::element_type> owner;
    read_shared(archive, owner);
    value = owner;
  }
}

}  // namespace muster::detail
