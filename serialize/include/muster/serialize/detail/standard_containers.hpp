// SPDX-License-Identifier: BSL-1.0
#pragma once

// How text and containers are written and read. Each function does so with one value; standard_values.hpp chooses.
//
// Thread safety: as the archive.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <muster/base/requirements.hpp>

namespace muster::detail {

// A container of elements that are encoded in no bytes at all may have more elements than bytes are left, but a
// forged size must not make the receiver allocate without bound.
inline constexpr std::uint64_t always_believable_count = 4096;

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
  return count;
}

/// How many elements follow that have their own size as bytes.
template <class T, class Archive>
std::size_t read_row_count(Archive& archive) {
  std::uint64_t count = 0;
  archive.read(&count, sizeof count);
  archive.expect(count, sizeof(T));
  return count;
}

// ---- elements

template <class Archive, class Range>
void write_elements(Archive& archive, const Range& values) {
  for (const auto& each : values) archive(each);
}
template <class Archive, class Range>
void read_elements(Archive& archive, Range& values) {
  for (auto& each : values) archive(each);
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
  if constexpr (std::is_same_v<typename Range::value_type, bool>) {  // elements of std::vector<bool> are no bools
    for (const bool each : values) archive(each);
  } else {
    write_elements(archive, values);
  }
}
template <class Archive, class Range>
void read_sequence(Archive& archive, Range& values) {
  values.resize(read_count(archive));
  if constexpr (std::is_same_v<typename Range::value_type, bool>) {
    for (auto&& each : values) {
      bool bit = false;
      archive(bit);
      each = bit;
    }
  } else {
    read_elements(archive, values);
  }
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

}  // namespace muster::detail
