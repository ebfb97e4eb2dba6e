// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/ring_memory.hpp>

#include <algorithm>
#include <new>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

constexpr std::uint64_t ring_magic = 0x6d75737451750002;  // "mustQu", layout version 2
constexpr std::size_t line_bytes = 64;
constexpr std::size_t most_stride_bytes = std::size_t{1} << 30U;
constexpr std::chrono::nanoseconds longest_spin = std::chrono::milliseconds(1);

// Producers write the tail, consumers the head; the last line is read by all and written only when somebody sleeps, or
// runs elsewhere than before.
// Two lines apart: processors fetch lines in pairs.
struct ring_header {
  std::uint64_t magic;
  std::uint32_t kind;
  std::uint32_t stride_bytes;
  std::uint64_t capacity;
  std::int64_t spin_ns;
  alignas(2 * line_bytes) ring_memory::word head;
  alignas(2 * line_bytes) ring_memory::word tail;
  alignas(2 * line_bytes) ring_memory::wait_word items;
  ring_memory::wait_word space;
  ring_memory::wait_word closed;
  place_word producer;
  place_word consumer;
};
constexpr std::size_t header_bytes = 8 * line_bytes;
static_assert(sizeof(ring_header) == header_bytes);

// A negative number that became a huge one on its way here is shown as both.
std::string text_of_count(std::size_t number) {
  const auto as_signed = static_cast<std::ptrdiff_t>(number);
  return as_signed >= 0 ? text(number) : text(as_signed, " (as std::size_t: ", number, ")");
}

}  // namespace

ring_shape ring_shape::of(queue_kind kind, std::size_t capacity, std::size_t inline_bytes,
                          std::chrono::nanoseconds spin) {
  constexpr auto most_inline = most_stride_bytes - cell_head_bytes;
  if (capacity == 0 || capacity > ring_position::most_cells || inline_bytes > most_inline) {
    throw error(errc::invalid_argument,
                text("a queue of ", text_of_count(capacity), " messages with ", text_of_count(inline_bytes),
                     " bytes of room each was asked for: 1 to ", ring_position::most_cells, " messages and up to ",
                     most_inline, " bytes are possible; longer messages take blocks of their own"));
  }
  const auto needed = cell_head_bytes + std::max(inline_bytes, sizeof(std::uint64_t));
  return {.kind = kind,
          .capacity = capacity,
          .stride_bytes = (needed + line_bytes - 1) / line_bytes * line_bytes,
          .spin = std::clamp(spin, std::chrono::nanoseconds(0), longest_spin)};
}

std::size_t ring_shape::total_bytes() const noexcept { return header_bytes + capacity * stride_bytes; }

ring_memory ring_memory::make(std::span<std::byte> bytes, const ring_shape& shape) noexcept {
  new (bytes.data()) ring_header{.magic = ring_magic,
                                 .kind = static_cast<std::uint32_t>(shape.kind),
                                 .stride_bytes = static_cast<std::uint32_t>(shape.stride_bytes),
                                 .capacity = shape.capacity,
                                 .spin_ns = shape.spin.count(),
                                 .head = 0,
                                 .tail = 0,
                                 .items = 0,
                                 .space = 0,
                                 .closed = 0,
                                 .producer = 0,
                                 .consumer = 0};
  const ring_memory made(bytes, shape);
  for (std::size_t index = 0; index < shape.capacity; ++index) {
    made.cell(index).store(message_word::empty(0).bits(), std::memory_order_release);
  }
  return made;
}

ring_memory ring_memory::attach(std::span<std::byte> bytes, queue_kind kind) {
  if (bytes.size() >= header_bytes) {
    const auto& found = *reinterpret_cast<const volatile ring_header*>(bytes.data());  // each field is read once
    const std::size_t capacity = found.capacity;
    const std::size_t stride = found.stride_bytes;
    const std::chrono::nanoseconds spin(found.spin_ns);
    const bool is_shaped = capacity > 0 && capacity <= ring_position::most_cells && stride >= line_bytes &&
                           stride % line_bytes == 0 && stride <= most_stride_bytes &&
                           capacity <= (bytes.size() - header_bytes) / stride;
    if (found.magic == ring_magic && found.kind == static_cast<std::uint32_t>(kind) && is_shaped) {
      return {bytes,
              {.kind = kind,
               .capacity = capacity,
               .stride_bytes = stride,
               .spin = std::clamp(spin, std::chrono::nanoseconds(0), longest_spin)}};
    }
  }
  throw error(errc::corrupted, text("a block of ", bytes.size(),
                                    " bytes was received as a queue, but is none of this kind: was it a "
                                    "queue of another kind that was sent, or has somebody overwritten it?"));
}

ring_memory::ring_memory(std::span<std::byte> bytes, const ring_shape& shape) noexcept
    : shape_(shape), cells_(bytes.data() + header_bytes) {
  auto& where = *reinterpret_cast<ring_header*>(bytes.data());
  head_ = &where.head;
  tail_ = &where.tail;
  items_ = &where.items;
  space_ = &where.space;
  closed_ = &where.closed;
  producer_ = &where.producer;
  consumer_ = &where.consumer;
}

}  // namespace muster
