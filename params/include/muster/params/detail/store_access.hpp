// SPDX-License-Identifier: BSL-1.0
#pragma once

// What templates ask of a store's core, which is declared only.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/memory/detail/shared_block.hpp>
#include <muster/params/store_key.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/detail/type_mark.hpp>

namespace muster {

class tensor;

/// What became of a push.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct push_result {
  bool ok = false;            ///< whether it is the newest version now
  std::uint64_t version = 0;  ///< of it; else of the newest there is, 0 where there is none

  [[nodiscard]] explicit operator bool() const noexcept { return ok; }
};

/// What became of a push of several values.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct push_all_result {
  bool ok = false;  ///< whether all are the newest versions now; else none is
  std::vector<std::uint64_t>
      versions{};  ///< of them, in the order in which they were given; else of the newest there are

  [[nodiscard]] explicit operator bool() const noexcept { return ok; }
};

namespace detail {

class store_core;
using store_ptr = std::shared_ptr<store_core>;

/// A version as it was found: its bytes stay as long as this does.
///
/// Thread safety: distinct objects: safe. Shared objects: safe while nobody assigns.
class found_version {
public:
  static constexpr std::size_t most_copied = 256;

  std::uint64_t version = 0;
  std::uint64_t type = 0;                                 ///< fingerprint
  bool is_tensor = false;                                 ///< its elements, in a block
  std::size_t bytes = 0;                                  ///< of the value
  shared_block block{};                                   ///< that it lies in; of a short one none
  std::size_t capacity = 0;                               ///< of the block
  alignas(64) std::array<std::byte, most_copied> copied;  // indeterminate beyond bytes, and where there is a block

  [[nodiscard]] std::span<const std::byte> frame() const noexcept;
};

/// A version that is being encoded.
///
/// Thread safety: belongs to its thread.
class new_version {
public:
  /// Room for the encoded value, beside its key if it is short and `is_alone`. Throws errc::out_of_memory.
  new_version(store_ptr store, const store_key& key, const type_mark& type, std::size_t bytes, bool is_alone = true);
  /// A copy of a tensor.
  new_version(store_ptr store, const store_key& key, const tensor& value);
  /// A tensor like that one, whose elements are undefined. Never beside its key.
  [[nodiscard]] static new_version like(store_ptr store, const store_key& key, const tensor& other);
  new_version(new_version&& other) noexcept;
  new_version& operator=(new_version&&) = delete;
  ~new_version();

  [[nodiscard]] std::span<std::byte> room() noexcept;
  /// Has it be at least that version. Requires: not alone.
  void set_least(std::uint64_t version) noexcept;
  /// The tensor, where it will lie: to be written to until it is published. Requires: it is one, in a block.
  [[nodiscard]] tensor elements() const;
  /// As store::push. To be called once.
  [[nodiscard]] push_result publish(std::optional<std::uint64_t> expected);
  /// As store::push_all. Requires: not alone.
  [[nodiscard]] static push_all_result publish_all(const store_ptr& store, std::span<new_version> all,
                                                   std::span<const std::optional<std::uint64_t>> expected);

private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// A value that is to be one of several new versions.
template <class T>
[[nodiscard]] new_version version_of(const store_ptr& store, const store_key& key, const T& value) {
  if constexpr (std::is_same_v<T, tensor>) {
    return new_version(store, key, value);
  } else {
    new_version made(store, key, mark_of<T>(), codec<T>::size(value), false);
    codec<T>::encode(made.room(), value);
    return made;
  }
}

/// As store::push, of a tensor.
[[nodiscard]] push_result push_tensor(const store_ptr& store, const store_key& key, const tensor& value,
                                      std::optional<std::uint64_t> expected);
/// The same of a tensor that is given away: without a copy, where it can be a version as it lies. Then it is tensor().
[[nodiscard]] push_result push_given(const store_ptr& store, const store_key& key, tensor& value,
                                     std::optional<std::uint64_t> expected);
/// A tensor like that one, with undefined elements, which can be given away so.
[[nodiscard]] tensor empty_like(const store_ptr& store, const tensor& other);
/// The elements where they lie, or a copy of short ones. Requires: the type fits.
void read_tensor(const found_version& found, tensor& to);

/// The newest version, or that one; nothing where it is not there (any more).
[[nodiscard]] std::optional<found_version> find_version(const store_ptr& store, const store_key& key,
                                                        std::optional<std::uint64_t> version);
/// All of them as they were at one moment. Throws errc::invalid_argument, with the key that is not there.
[[nodiscard]] std::vector<found_version> find_all(const store_ptr& store, std::span<const store_key> keys);
/// Throws errc::invalid_argument, with key and types, unless it is of that type.
void require_type(const store_key& key, const found_version& found, const type_mark& asked);
[[noreturn]] void throw_missing(const store_key& key);
[[noreturn]] void throw_too_busy(const store_key& key);
/// Until when a function waits that was told so.
[[nodiscard]] deadline end_of_wait(const store_ptr& store, std::chrono::nanoseconds given);

template <class T>
[[nodiscard]] T value_of_version(const store_key& key, const found_version& found) {
  require_type(key, found, mark_of<T>());
  if constexpr (std::is_same_v<T, tensor>) {
    T made;
    read_tensor(found, made);
    return made;
  } else {
    return codec<T>::decode_value(found.frame());
  }
}

template <class T>
[[nodiscard]] push_result push_value(const store_ptr& store, const store_key& key, const T& value,
                                     std::optional<std::uint64_t> expected) {
  if constexpr (std::is_same_v<T, tensor>) {
    return push_tensor(store, key, value, expected);
  } else {
    new_version made(store, key, mark_of<T>(), codec<T>::size(value));
    codec<T>::encode(made.room(), value);
    return made.publish(expected);
  }
}

}  // namespace detail
}  // namespace muster
