// SPDX-License-Identifier: BSL-1.0
#pragma once

// One read-only copy of an object in shared memory, read in place by every process.
//
//     const auto table = muster::share(squares);   // squares: struct { std::array<int, 1000> values; }
//     pool.map(muster::bind_front([](const muster::shared_object<squares_table>& in, int x) { return in->values[x]; },
//                                 table), xs);
//
// For what is more than its bytes (strings, maps, vectors): shared_segment.hpp. Layout: docs/formats/shared_object.md.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <muster/base/detail/fork_count.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster {

class domain;

namespace detail {

/// What is noted of a type beside an object of it.
struct image_type {
  std::uint64_t number = 0;  ///< the same in all processes of one build
  std::size_t bytes = 0;
  std::size_t alignment = 0;
};

template <class T>
consteval image_type image_type_of() {
  std::uint64_t number = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  for (const char each : std::string_view(__PRETTY_FUNCTION__)) {
    number = (number ^ static_cast<unsigned char>(each)) * 0x100'0000'01b3;
  }
  return {.number = number, .bytes = sizeof(T), .alignment = alignof(T)};
}

/// A block that is an object and all that the object refers to, by a header that says where the object is. Wherever the
/// block is mapped, and wherever its bytes are copied to, the object is whole.
///
/// Thread safety: distinct objects: safe. Shared objects: safe once it is sealed.
/// Lifetime: keeps the block, and the block's domain.
class shared_image {
public:
  /// Room for objects begins at a multiple of this.
  static constexpr std::size_t alignment = 64;

  shared_image() noexcept = default;
  /// With room for `bytes` bytes, in the domain `where`; nullptr: the program's. Throws errc::out_of_memory.
  shared_image(std::size_t bytes, std::shared_ptr<domain> where);

  /// What follows the header.
  [[nodiscard]] std::span<std::byte> room() const noexcept;
  /// Says which object in the room it is about; from now on nobody writes to it.
  void seal(const image_type& type, const void* object) noexcept;

  [[nodiscard]] bool has_object() const noexcept { return object_ != nullptr; }
  /// nullptr: there is none. Throws errc::forked in a forked child that does not have the memory.
  [[nodiscard]] const void* object() const {
    stamp_.require_here("a shared object");
    return object_;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  void save(output_archive& archive) const;
  /// Throws errc::corrupted for what no such object's encoding can be, and for a block without such an object.
  [[nodiscard]] static shared_image load(input_archive& archive, const image_type& type);

private:
  struct held;

  shared_image(shared_block block, std::size_t bytes, std::shared_ptr<domain> keeper);
  [[nodiscard]] static shared_image read_block(shared_block block, const image_type& type);
  void find_object(const image_type& type);
  [[nodiscard]] std::span<std::byte> all() const noexcept;

  std::shared_ptr<const held> held_;
  const void* object_ = nullptr;
  std::size_t bytes_ = 0;  // header included
  fork_stamp stamp_;
};

struct shared_object_access;

}  // namespace detail

/// An object in shared memory that nobody changes any more. Copies of the handle, in whatever process, are of the same
/// object; it is there as long as one of them is, whoever made it. As an argument or result it takes nine bytes.
///
/// Sealed is what nobody can write to by this handle: it gives const access only. The pages are not write-protected, so
/// that a process of the same program that casts the const away, or has a stray pointer, can spoil the object for all
/// (why: docs/formats/shared_object.md). What comes from another process is checked as far as its place and its type
/// go; the object itself is taken as it is.
///
/// Thread safety: distinct objects: safe. Shared objects: safe while nobody assigns.
/// Process safety: all processes read at once; a death takes nothing away from the others. In a forked child access
/// throws errc::forked, unless the domain is inherited (domain_options::inherited).
/// Lifetime: keeps the memory and its domain.
/// Cost: a copy is one increment; sending it changes nothing that is shared.
template <class T>
class shared_object {
public:
  using element_type = const T;

  /// Refers to nothing.
  shared_object() noexcept = default;

  [[nodiscard]] explicit operator bool() const noexcept { return image_.has_object(); }
  /// Returns the object; nullptr when this handle refers to nothing. Throws errc::forked in a forked child that does
  /// not have the memory.
  [[nodiscard]] const T* get() const { return static_cast<const T*>(image_.object()); }
  /// Requires: it refers to something.
  [[nodiscard]] const T& operator*() const { return *get(); }
  [[nodiscard]] const T* operator->() const { return get(); }
  /// What it takes in shared memory, unused room included.
  [[nodiscard]] std::size_t size_bytes() const noexcept { return image_.bytes(); }

  /// For cereal: docs/formats/shared_object.md. Loading throws errc::corrupted for what no such object can be.
  ///@{
  void save(output_archive& archive) const { image_.save(archive); }
  void load(input_archive& archive) { image_ = detail::shared_image::load(archive, detail::image_type_of<T>()); }
  ///@}

private:
  friend struct detail::shared_object_access;

  detail::shared_image image_;
};

namespace detail {

/// For the functions that make shared objects.
struct shared_object_access {
  template <class T>
  [[nodiscard]] static shared_object<T> of(shared_image image, const T* object) noexcept {
    shared_object<T> made;
    image.seal(image_type_of<T>(), object);
    made.image_ = std::move(image);
    return made;
  }
};

template <class T>
consteval void require_shareable() {
  static_assert(std::is_trivially_copyable_v<T> && !refers_elsewhere<T> && !holds_pointers<T> && !std::is_array_v<T>,
                "muster: share(object) copies bytes, which is not enough for this type: build it inside of shared "
                "memory, share<T>(bytes, build) of <muster/serialize/shared_segment.hpp>, with containers of "
                "Boost.Interprocess");
  static_assert(alignof(T) <= shared_image::alignment, "muster: objects in shared memory are aligned to at most 64");
}

}  // namespace detail

/// A copy of `value` in shared memory, in the domain `where`; by default the program's.
/// Throws errc::out_of_memory. Requires: no pointers in it.
/// Thread safety: safe.
/// Cost: the copy; memory comes in pieces of 64 KiB.
template <class T>
[[nodiscard]] shared_object<T> share(const T& value, std::shared_ptr<domain> where = nullptr) {
  detail::require_shareable<T>();
  detail::shared_image image(sizeof(T), std::move(where));
  const auto* const made = ::new (image.room().data()) T(value);
  return detail::shared_object_access::of<T>(std::move(image), made);
}

}  // namespace muster
