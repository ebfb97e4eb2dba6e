// SPDX-License-Identifier: BSL-1.0
#include "fill_run.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <muster/device/detail/stores.hpp>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace muster::detail {

namespace {

constexpr std::size_t line_bytes = 64;

void repeat(std::byte* to, std::size_t bytes, const fill_pattern& with) noexcept {
  std::size_t at = 0;
  for (; at + line_bytes <= bytes; at += line_bytes) {
    for (std::size_t part = 0; part < line_bytes; part += with.size()) {
      std::memcpy(to + at + part, with.data(), with.size());
    }
  }
  for (; at + with.size() <= bytes; at += with.size()) std::memcpy(to + at, with.data(), with.size());
  std::memcpy(to + at, with.data(), bytes - at);
}

#if defined(__SSE2__)

void stream_lines(std::byte* to, std::size_t bytes, const fill_pattern& with) noexcept {
  const auto value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(with.data()));
  for (std::size_t at = 0; at < bytes; at += line_bytes) {
    auto* const line = reinterpret_cast<__m128i*>(to + at);
    _mm_stream_si128(line, value);
    _mm_stream_si128(line + 1, value);
    _mm_stream_si128(line + 2, value);
    _mm_stream_si128(line + 3, value);
  }
  _mm_sfence();
}

void stream(std::byte* to, std::size_t bytes, fill_pattern with) noexcept {
  const auto head = -reinterpret_cast<std::uintptr_t>(to) % line_bytes;
  const auto lines = (bytes - head) / line_bytes * line_bytes;
  repeat(to, head, with);
  std::rotate(with.begin(), with.begin() + head % with.size(), with.end());  // as it goes on at the first line
  stream_lines(to + head, lines, with);
  repeat(to + head + lines, bytes - head - lines, with);
}

#endif

}  // namespace

void fill_run(std::byte* to, std::size_t bytes, const fill_pattern& with) noexcept {
#if defined(__SSE2__)
  if (stores_for(bytes) == stores::streaming) return stream(to, bytes, with);
#endif
  repeat(to, bytes, with);
}

}  // namespace muster::detail
