// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "combine_kernel.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace muster::detail {

#if defined(__SSE2__)

namespace {

constexpr std::size_t buffer_bytes = 64;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t pages_at_once = 4;

// Whole, so that it leaves its write-combining buffer at once. Requires: `to` begins a line.
void stream_line(std::byte* to, const std::byte* from) noexcept {
  auto* const line = reinterpret_cast<__m128i*>(to);
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  const __m128i first = _mm_loadu_si128(source);
  const __m128i second = _mm_loadu_si128(source + 1);
  const __m128i third = _mm_loadu_si128(source + 2);
  const __m128i fourth = _mm_loadu_si128(source + 3);
  _mm_stream_si128(line, first);
  _mm_stream_si128(line + 1, second);
  _mm_stream_si128(line + 2, third);
  _mm_stream_si128(line + 3, fourth);
}

// Lines of some pages in turn: who fetches ahead does so for each page, and stops at its end. That is a quarter faster
// than one page after the other.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::size_t at = 0;
  for (; at + pages_at_once * page_bytes <= bytes; at += pages_at_once * page_bytes) {
    for (std::size_t line = at; line < at + page_bytes; line += buffer_bytes) {
      for (std::size_t page = 0; page < pages_at_once; ++page) {
        stream_line(to + line + page * page_bytes, from + line + page * page_bytes);
      }
    }
  }
  for (; at < bytes; at += buffer_bytes) stream_line(to + at, from + at);
}

void stream(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const auto head = std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % buffer_bytes);
  const auto lines = (bytes - head) / buffer_bytes * buffer_bytes;
  const auto tail = head + lines;
  std::memcpy(to, from, head);
  stream_lines(to + head, from + head, lines);
  std::memcpy(to + tail, from + tail, bytes - tail);
}

}  // namespace

void fence(stores how) noexcept {
  if (how == stores::streaming) _mm_sfence();
}

#else

namespace {

void stream(std::byte* to, const std::byte* from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }

}  // namespace

void fence(stores) noexcept {}

#endif

void put(std::byte* to, const std::byte* from, std::size_t bytes, stores how) noexcept {
  if (bytes == 0 || to == from) return;
  if (how == stores::streaming) return stream(to, from, bytes);
  std::memcpy(to, from, bytes);
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes, stores how) {
  put(to, from, bytes, how);
  fence(how);
}

}  // namespace muster::detail
