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
#include <muster/serialize/detail/standard_form.hpp>

namespace muster::detail {

// A container of elements that are encoded in no bytes at all may have more elements than bytes are left, but a
// forged size must not make the receiver allocate without bound.
inline constexpr std::uint64_t always_believable_count = 4096;

/// Throws errc::not_serializable.
[[noreturn]] void throw_valueless_variant();
/// Throws errc::not_serializable.
[[noreturn]] void throw_bad_alternative(std::int32_t index, std::size_t alternatives);

template <class Archive>
void write_count(Archive& archive, std::size_t count) {
  const std::uint64_t wide = count;
  archive.write(&wide, sizeof wide);
}

/// How many elements follow. Throws errc::not_serializable when so many cannot.
template <class Archive>
std::size_t read_count(Archive& archive) {
  std::uint64_t count = 0;
  archive.read(&count, sizeof count);
  if (count > always_believable_count) archive.expect(count, 1);
  return static_cast<std::size_t>(count);
}

/// How many elements follow that have their own size as bytes.
template <class T, class Archive>
std::size_t read_row_count(Archive& archive) {
  std::uint64_t count = 0;
  archive.read(&count, sizeof count);
  archive.expect(count, sizeof(T));
  return static_cast<std::size_t>(count);
}

// ---- arrays, tuples

template <class Archive, class Range>
void write_elements(Archive& archive, const Range& values) {
  for (const auto& each : values) archive(each);
}
template <class Archive, class Range>
void read_elements(Archive& archive, Range& values) {
  for (auto&& each : values) {
    if constexpr (std::is_reference_v<decltype(each)> && std::is_class_v<std::remove_cvref_t<decltype(each)>> &&
                  requires { each.flip(); }) {  // of std::vector<bool>
      bool bit = false;
      archive(bit);
      each = bit;
    } else {
      archive(each);
    }
  }
}

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

template <class T>
using alternatives_of = template_arguments<T>;
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

// ---- text, rows

template <class Archive, class Text>
void write_text(Archive& archive, const Text& text) {
  write_count(archive, text.size());
  archive.write(text.data(), text.size() * sizeof *text.data());
}
template <class Archive, class Text>
void read_text(Archive& archive, Text& text) {
  using character = typename Text::value_type;
  const auto count = read_row_count<character>(archive);
  text.resize(count);
  archive.read(text.data(), count * sizeof(character));
}

template <class Archive, class Vector>
void write_row(Archive& archive, const Vector& values) {
  using element = typename Vector::value_type;
  write_count(archive, values.size());
  archive.align(alignof(element));
  archive.write(values.data(), values.size() * sizeof(element));
}
template <class Archive, class Vector>
void read_row(Archive& archive, Vector& values) {
  using element = typename Vector::value_type;
  std::uint64_t count = 0;
  archive.read(&count, sizeof count);
  archive.align(alignof(element));
  archive.expect(count, sizeof(element));
  const auto* first = reinterpret_cast<const element*>(archive.take(count * sizeof(element)));
  values.assign(first, first + count);  // one pass: resize-then-read would zero the memory first
}

// ---- other containers

template <class Range>
std::size_t count_of_elements(const Range& values) {
  if constexpr (requires { values.size(); }) {
    return values.size();
  } else {
    std::size_t count = 0;
    for (auto at = values.begin(); at != values.end(); ++at) ++count;
    return count;
  }
}

template <class Archive, class Range>
void write_sequence(Archive& archive, const Range& values) {
  write_count(archive, count_of_elements(values));
  if constexpr (std::is_same_v<typename Range::value_type, bool>) {
    for (const bool each : values) archive(each);
  } else {
    write_elements(archive, values);
  }
}
template <class Archive, class Range>
void read_sequence(Archive& archive, Range& values) {
  values.resize(read_count(archive));
  read_elements(archive, values);
}

/// Before which the next element is inserted, so that equal keys stay in order. A tree puts it right before its hint; a
/// hash table puts it behind the hint if that has the same key.
template <class Container, class Last>
Last hint_after(const Container& values, Last last) {
  if constexpr (requires { typename Container::hasher; }) {
    return last;
  } else {
    return values.end();
  }
}

template <class Archive, class Container>
void write_keyed(Archive& archive, const Container& values) {
  write_count(archive, values.size());
  for (const auto& each : values) {
    if constexpr (requires { typename Container::mapped_type; }) {
      archive(each.first, each.second);
    } else {
      archive(each);
    }
  }
}
template <class Archive, class Container>
void read_keyed(Archive& archive, Container& values) {
  const auto count = read_count(archive);
  values.clear();
  typename Container::const_iterator last = values.end();
  for (std::size_t i = 0; i < count; ++i) {
    typename Container::key_type key{};
    if constexpr (requires { typename Container::mapped_type; }) {
      typename Container::mapped_type value{};
      archive(key, value);
      last = values.emplace_hint(hint_after(values, last), std::move(key), std::move(value));
    } else {
      archive(key);
      last = values.emplace_hint(hint_after(values, last), std::move(key));
    }
  }
}

/// The container in an adaptor, which only derived classes may name.
template <class Adaptor>
struct opened : Adaptor {
  static const typename Adaptor::container_type& container_in(const Adaptor& value) { return value.*&opened::c; }
  static typename Adaptor::container_type& container_in(Adaptor& value) { return value.*&opened::c; }
};

// ---- owners

template <class Archive, class Owner>
void write_unique(Archive& archive, const Owner& owner) {
  const std::uint8_t is_there = owner == nullptr ? 0 : 1;
  archive.write(&is_there, sizeof is_there);
  if (owner != nullptr) archive(*owner);
}
template <class Archive, class Owner>
void read_unique(Archive& archive, Owner& owner) {
  using object = std::remove_cv_t<typename Owner::element_type>;
  std::uint8_t is_there = 0;
  archive.read(&is_there, sizeof is_there);
  owner.reset();
  if (is_there == 0) return;
  std::unique_ptr<object> read(Archive::template make<object>());
  archive(*read);
  owner = std::move(read);
}

template <class Archive, class Owner>
void write_shared(Archive& archive, const Owner& owner) {
  const std::uint32_t id = archive.registerSharedPointer(owner);
  archive.write(&id, sizeof id);
  if (Archive::is_first_sight(id)) archive(*owner);
}
template <class Archive, class Owner>
void read_shared(Archive& archive, Owner& owner) {
  using element = typename Owner::element_type;
  using object = std::remove_cv_t<element>;
  std::uint32_t id = 0;
  archive.read(&id, sizeof id);
  if (!Archive::is_first_sight(id)) {
    owner = std::static_pointer_cast<element>(archive.getSharedPointer(id));
    return;
  }
  std::shared_ptr<object> read(Archive::template make<object>());
  archive.registerSharedPointer(id, read);
  archive(*read);
  owner = std::move(read);
}

// ---- all of them

/// Requires: T has a form, and is no plain type, nor a pointer that cereal must send.
template <class Archive, class T>
void write_standard(Archive& archive, const T& value) {
  constexpr auto form = standard_form_of<T>;
  using enum standard_form;
  if constexpr (form == array) write_elements(archive, value);
  if constexpr (form == tuple) each_part(archive, value);
  if constexpr (form == optional) write_optional(archive, value);
  if constexpr (form == variant)
    write_variant(archive, value, std::make_index_sequence<count_of(alternatives_of<T>())>());
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
    read_variant(archive, value, std::make_index_sequence<count_of(alternatives_of<T>())>());
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
