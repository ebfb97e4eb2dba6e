// SPDX-License-Identifier: BSL-1.0
#pragma once

// Containers in shared memory: built once, inside of one block, by one process; then read in place by all.
//
//     namespace bip = boost::interprocess;
//     using names = bip::vector<int, muster::shared_allocator<int>>;
//
//     const auto table = muster::share<names>(1 << 20, [&](const muster::shared_allocator<int>& where) {
//       names made(where);
//       for (const int each : numbers) made.push_back(each);
//       return made;
//     });

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <boost/container/throw_exception.hpp>
#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/managed_external_buffer.hpp>

#include <muster/serialize/shared_object.hpp>

namespace muster {

/// The memory that a shared object's parts come from: all of it lies in the object's one block.
///
/// Thread safety: unsafe; it belongs to whoever builds.
using shared_segment = boost::interprocess::managed_external_buffer;

/// For the containers of Boost.Interprocess (and others that take fancy pointers) inside of a shared object. Converts
/// to the allocator of any other element.
///
/// Thread safety: as the segment.
template <class T>
using shared_allocator = boost::interprocess::allocator<T, shared_segment::segment_manager>;

namespace detail {

template <class T, class Build>
concept builds = requires(Build& build, const shared_allocator<std::byte>& where) {
  { build(where) } -> std::same_as<T>;
};

/// An object of `object_bytes` bytes, `bytes` for its parts, and the segment's own tables. Throws errc::out_of_memory
/// where that is more than there can be.
[[nodiscard]] std::size_t segment_bytes(std::size_t object_bytes, std::size_t bytes);
/// Room for another attempt. Where there is none, throws `refused`, if there is that, else errc::out_of_memory.
[[nodiscard]] shared_image segment_image(std::size_t room, const std::shared_ptr<domain>& where,
                                         const std::exception_ptr& refused);

/// Builds the object in the room of `image`; nullptr when that is too small. `refused` is what may be of the builder's
/// own, if anything.
template <class T, class Build>
const T* build_in(const shared_image& image, Build& build, std::exception_ptr& refused) {
  refused = nullptr;
  try {
    shared_segment segment(boost::interprocess::create_only, image.room().data(), image.room().size());
    auto* const place = segment.allocate_aligned(sizeof(T), shared_image::alignment);
    return ::new (place) T(build(shared_allocator<std::byte>(segment.get_segment_manager())));
  } catch (const boost::interprocess::bad_alloc&) {
    return nullptr;
  } catch (const boost::container::length_error&) {  // more elements than ever fit there
    return nullptr;
  } catch (const std::length_error&) {  // the same, of other containers; or `build` means something else
    refused = std::current_exception();
    return nullptr;
  }
}

}  // namespace detail

/// What `build(allocator)` returns, in shared memory: `build` makes a T of which every part comes from that allocator.
/// `bytes` is how much room it will need, at a guess: when that is too little, `build` is called again with twice the
/// room. The domain is `where`; by default the program's. A T in shared memory is never destroyed, its memory is
/// released.
///
/// Throws errc::out_of_memory when there is not enough shared memory, and what `build` throws. Containers throw
/// std::length_error for want of room, so one that `build` throws comes out when no more room can be had.
/// Requires: no pointers, no virtual functions and nothing of the heap in T: std::string and std::vector have it.
/// Thread safety: safe.
template <class T, class Build>
  requires detail::builds<T, Build>
[[nodiscard]] shared_object<T> share(std::size_t bytes, Build build, const std::shared_ptr<domain>& where = nullptr) {
  static_assert(!std::is_polymorphic_v<T>, "muster: virtual functions are elsewhere in another process");
  static_assert(alignof(T) <= detail::shared_image::alignment,
                "muster: objects in shared memory are aligned to at most 64");
  std::exception_ptr refused;
  for (auto room = detail::segment_bytes(sizeof(T), bytes);; room *= 2) {
    auto image = detail::segment_image(room, where, refused);
    if (const auto* const made = detail::build_in<T>(image, build, refused)) {
      return detail::shared_object_access::of<T>(std::move(image), made);
    }
  }
}

}  // namespace muster
