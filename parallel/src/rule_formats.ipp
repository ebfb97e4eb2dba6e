// SPDX-License-Identifier: BSL-1.0
// How elements lie in memory, and the pieces that they are computed in. Part of rule_kernels.ipp, which says what may
// be used here.

namespace muster::detail {
namespace {

/// A piece of all arrays: what they are computed in, half of a first cache.
template <class Wide>
struct piece {
  static constexpr std::size_t most = 4096 / sizeof(Wide);

  std::size_t count = 0;
  alignas(64) Wide gradient[most];
  alignas(64) Wide value[most];
  alignas(64) Wide states[update_rule::most_states][most];
  alignas(64) std::uint16_t halves[most];  // the value as it is stored, where that is in 16 bits
};

/// Elements that are computed with as they are.
template <class T>
struct plain {
  using element = T;
  using wide = T;
  static T widen(T each) { return each; }
};

/// Floating-point numbers of 16 bits, by the bits, and what they are computed in.
struct half_format {
  using element = std::uint16_t;
  using wide = float;

protected:
  static std::uint32_t bits_of(float each) { return __builtin_bit_cast(std::uint32_t, each); }
  static float of_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
};

/// As bf16's conversions, without branches.
struct bf16_format : half_format {
  static float widen(element each) { return of_bits(std::uint32_t{each} << 16U); }

  static element narrow(float each) {
    const auto value = bits_of(each);
    const std::uint32_t quiet = value >> 16U | 0x40U;
    const std::uint32_t nearest = (value + 0x7fffU + (value >> 16U & 1U)) >> 16U;
    return static_cast<element>((value & 0x7fff'ffffU) > 0x7f80'0000U ? quiet : nearest);
  }
};

/// As f16's conversions, without branches.
struct f16_format : half_format {
  static float widen(element each) {
    const std::uint32_t magnitude = each & 0x7fffU;
    const std::uint32_t normal = (magnitude << 13U) + (112U << 23U);
    const std::uint32_t special = magnitude << 13U | 0x7f80'0000U;
    // With a sign, because every instruction set converts such integers.
    const std::uint32_t subnormal = bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
    const std::uint32_t finite = magnitude < 0x400U ? subnormal : normal;
    return of_bits((magnitude >= 0x7c00U ? special : finite) | (each & 0x8000U) << 16U);
  }

  static element narrow(float each) {
    const auto value = bits_of(each);
    const std::uint32_t magnitude = value & 0x7fff'ffffU;
    const std::uint32_t rebased = magnitude - (112U << 23U);
    const std::uint32_t normal = (rebased + 0xfffU + (rebased >> 13U & 1U)) >> 13U;
    // One unit of 0.5F's mantissa is one of the subnormal numbers': the addition rounds.
    const std::uint32_t subnormal = bits_of(of_bits(magnitude) + 0.5F) - 0x3f00'0000U;
    const std::uint32_t finite = magnitude < 0x3880'0000U ? subnormal : normal;
    const std::uint32_t not_nan = magnitude >= 0x4780'0000U ? 0x7c00U : finite;
    const std::uint32_t quiet = 0x7e00U | (magnitude >> 13U & 0x3ffU);
    return static_cast<element>((magnitude > 0x7f80'0000U ? quiet : not_nan) | (value >> 16U & 0x8000U));
  }

#if defined(__F16C__)
  static constexpr std::size_t at_once = 8;

  static void widen(const std::byte* halves, float* to) {
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves))));
  }

  static void narrow(const float* from, element* to) {
    const auto halves = _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
  }
#endif
};

/// By bytes: in memory there are no objects of these types.
template <class Format>
typename Format::wide element(const std::byte* array, std::size_t at) {
  typename Format::element loaded;
  __builtin_memcpy(&loaded, array + at * sizeof(loaded), sizeof(loaded));
  return Format::widen(loaded);
}

/// Calls `take(index, element)` for `count` of them, in order.
template <class Format, class F>
[[gnu::always_inline]] inline void each_element(const std::byte* array, std::size_t count, const F& take) {
  std::size_t at = 0;
  if constexpr (requires { Format::at_once; }) {
    for (; at + Format::at_once <= count; at += Format::at_once) {
      typename Format::wide some[Format::at_once];
      Format::widen(array + at * sizeof(typename Format::element), some);
      for (std::size_t each = 0; each < Format::at_once; ++each) take(at + each, some[each]);
    }
  }
  for (; at < count; ++at) take(at, element<Format>(array, at));
}

template <class Format>
void narrow(piece<float>& here) {
  std::size_t at = 0;
  if constexpr (requires { Format::at_once; }) {
    for (; at + Format::at_once <= here.count; at += Format::at_once) Format::narrow(here.value + at, here.halves + at);
  }
  for (; at < here.count; ++at) here.halves[at] = Format::narrow(here.value[at]);
}

/// The value as it is stored.
template <class Format>
const std::byte* rounded(piece<typename Format::wide>& here) {
  if constexpr (sizeof(typename Format::element) < sizeof(typename Format::wide)) {
    narrow<Format>(here);
    return reinterpret_cast<const std::byte*>(here.halves);
  }
  return reinterpret_cast<const std::byte*>(here.value);
}

}  // namespace
}  // namespace muster::detail
