// SPDX-License-Identifier: BSL-1.0
#pragma once

// The elements of a map in one shared block, and room for their results. Layout: docs/formats/chunk.md.
//
// Elements that are nothing but their bytes lie in an array, as do such results: a worker reads and writes them in
// place. Others are encoded one after the other, with a table of where each begins.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <type_traits>

#include <muster/memory/detail/block.hpp>
#include <muster/queue/detail/outgoing_frame.hpp>
#include <muster/serialize/detail/codec.hpp>

namespace muster::detail {

inline constexpr std::size_t batch_alignment = 64;

/// Values that lie in an array.
template <class T>
concept array_element = trivially_transportable<T> && alignof(T) <= batch_alignment;

/// Where things are in a batch block, in bytes from its start; the first bytes of the block.
struct batch_header {
  std::uint64_t count = 0;
  std::uint64_t elements_offset = 0;  ///< of the array, or of the table of count + 1 offsets
  std::uint64_t results_offset = 0;   ///< of the array of results; 0: results are encoded elsewhere
};

[[nodiscard]] constexpr std::size_t round_up(std::size_t bytes, std::size_t alignment) noexcept {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// How much room results of type `R` need in the batch; R may be void.
template <class R>
[[nodiscard]] constexpr std::size_t result_array_bytes(std::size_t count) noexcept {
  if constexpr (array_element<R>) {
    return count * sizeof(R);
  } else {
    return 0;
  }
}

/// A batch, and the blocks that its elements refer to.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
struct packed_batch {
  block memory;
  attachment_list attachments;
  std::size_t referenced_bytes = 0;  ///< of the attachments
};

/// Puts `count` elements from `first` on into a new block. Goes over encoded elements twice. `how`: whether what of
/// them lies in shared memory is copied too.
template <class T, class R, std::input_iterator Iterator>
[[nodiscard]] packed_batch make_batch(arena& memory, Iterator first, std::size_t count,
                                      transfer how = transfer::reference) {
  batch_header header{.count = count, .elements_offset = batch_alignment};
  [[maybe_unused]] const auto measured = [how](const T& value) {
    return codec<T>::measure(how != transfer::copy, value);
  };
  std::size_t elements_bytes = 0;
  std::size_t attached = 0;
  if constexpr (array_element<T>) {
    elements_bytes = count * sizeof(T);
  } else {
    elements_bytes = round_up((count + 1) * sizeof(std::uint64_t), frame_alignment);
    auto each = first;
    for (std::size_t index = 0; index < count; ++index, ++each) {
      const auto needed = measured(*each);
      elements_bytes += round_up(needed.bytes, frame_alignment);
      attached += needed.attachments;
    }
  }
  const auto results_at = round_up(header.elements_offset + elements_bytes, batch_alignment);
  const auto results_bytes = result_array_bytes<R>(count);
  if (results_bytes > 0) header.results_offset = results_at;
  packed_batch batch{
      .memory = allocate(memory, results_at + results_bytes, 1), .attachments = {}, .referenced_bytes = 0};
  std::memcpy(batch.memory.data(), &header, sizeof header);

  auto* const elements = batch.memory.data() + header.elements_offset;
  if constexpr (array_element<T> && std::contiguous_iterator<Iterator>) {
    if (count > 0) std::memcpy(elements, std::to_address(first), count * sizeof(T));
  } else if constexpr (array_element<T>) {
    for (std::size_t index = 0; index < count; ++index, ++first) {
      const T value = *first;
      std::memcpy(elements + index * sizeof(T), &value, sizeof(T));
    }
  } else {
    attachment_lender attachments(memory, batch.attachments, attached);
    auto* const offsets = reinterpret_cast<std::uint64_t*>(elements);
    auto at = round_up((count + 1) * sizeof(std::uint64_t), frame_alignment);
    for (std::size_t index = 0; index < count; ++index, ++first) {
      offsets[index] = at;
      const auto bytes = measured(*first).bytes;
      codec<T>::encode_with({elements + at, bytes}, how == transfer::copy ? nullptr : &attachments, *first);
      at += round_up(bytes, frame_alignment);
    }
    offsets[count] = at;
    batch.referenced_bytes = attachments.bytes();
  }
  return batch;
}

/// Throws errc::corrupted.
[[noreturn]] void throw_outside_batch(std::size_t index);

/// One element of a batch; `elements` is what lies at elements_offset.
/// Throws errc::not_serializable when its bytes cannot be decoded, errc::corrupted when they do not lie in the batch.
template <class T>
[[nodiscard]] T read_element(std::span<const std::byte> elements, std::size_t index,
                             attachment_source* attachments = nullptr) {
  if constexpr (array_element<T>) {
    return codec<T>::decode_value(elements.subspan(index * sizeof(T), sizeof(T)));
  } else {
    std::array<std::uint64_t, 2> bounds;  // read once: others can write to them
    std::memcpy(bounds.data(), elements.data() + index * sizeof(std::uint64_t), sizeof bounds);
    if (bounds[0] > bounds[1] || bounds[1] > elements.size()) throw_outside_batch(index);
    return codec<T>::decode_value(elements.subspan(bounds[0], bounds[1] - bounds[0]), attachments);
  }
}

}  // namespace muster::detail
