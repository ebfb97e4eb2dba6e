// SPDX-License-Identifier: BSL-1.0
// How elements lie in memory, and what they are computed in. Part of combine_kernels.ipp, which says what may be used
// here.

namespace muster::detail {
namespace {

/// Elements that are computed with as they are.
template <class T>
struct plain {
  using element = T;
  using wide = T;
  static constexpr std::size_t lanes = register_bytes / sizeof(T);
  using elements = pack<T, lanes>;
  using wides = elements;

  static wides widen(elements each) { return each; }
  static elements narrow(wides each) { return each; }
};

/// Bools. Others may have written any byte; every one but 0 is true, and 1 from here on.
struct bool_format : plain<std::uint8_t> {
  static wides widen(elements each) {
    const elements one = elements{} + std::uint8_t{1};
    return each != elements{} ? one : elements{};
  }
};

/// Integers whose sum must not wrap around. Their division is one by one in any case.
template <class T, class Wide>
struct counted {
  using element = T;
  using wide = Wide;
  static constexpr std::size_t lanes = 1;
  using elements = T;
  using wides = Wide;

  static wides widen(elements each) { return each; }
  static elements narrow(wides each) { return static_cast<T>(each); }
};

template <class T>
struct complex_number {
  T real;
  T imaginary;
};

template <class T>
struct complex_format {
  using element = complex_number<T>;
  using wide = element;
  static constexpr std::size_t lanes = 1;
  using elements = element;
  using wides = element;

  static wides widen(elements each) { return each; }
  static elements narrow(wides each) { return each; }
};

/// Floating-point numbers of 16 bits, by the bits, and what they are computed in.
struct half_format {
  using element = std::uint16_t;
  using wide = float;
  static constexpr std::size_t lanes = register_bytes / sizeof(element);
  using elements = halves;
  using wides = twin<float_pack>;
};

/// As bf16's conversions.
struct bf16_format : half_format {
  static wides widen(elements each) {
    const auto value = raised(each);
    return {__builtin_bit_cast(float_pack, value.low), __builtin_bit_cast(float_pack, value.high)};
  }
  static elements narrow(const wides& each) { return narrowed({bits_of(each.low), bits_of(each.high)}); }

private:
  static bits_pack bits_of(float_pack each) {
    const auto value = __builtin_bit_cast(bits_pack, each);
    const bits_pack upper = value >> 16U;
    const bits_pack nearest = (value + 0x7fffU + (upper & 1U)) >> 16U;
    return is_nan(each) ? upper | 0x40U : nearest;
  }
};

#if defined(MUSTER_COMBINE_AVX2)

struct f16_format : half_format {
  static wides widen(elements each) {
    const auto all = __builtin_bit_cast(__m256i, each);
    return {__builtin_bit_cast(float_pack, _mm256_cvtph_ps(_mm256_castsi256_si128(all))),
            __builtin_bit_cast(float_pack, _mm256_cvtph_ps(_mm256_extracti128_si256(all, 1)))};
  }
  static elements narrow(const wides& each) {
    return __builtin_bit_cast(elements, _mm256_set_m128i(bits_of(each.high), bits_of(each.low)));
  }

private:
  static __m128i bits_of(float_pack each) {
    return _mm256_cvtps_ph(__builtin_bit_cast(__m256, each), _MM_FROUND_TO_NEAREST_INT);
  }
};

#else

/// As f16's conversions, without branches.
struct f16_format : half_format {
  static wides widen(elements each) {
    const auto value = widened(each);
    return {float_of(value.low), float_of(value.high)};
  }
  static elements narrow(const wides& each) { return narrowed({bits_of(each.low), bits_of(each.high)}); }

private:
  using signed_pack = pack<std::int32_t, register_bytes / 4>;  // what SSE2 converts to float

  static float_pack float_of(bits_pack value) {
    const bits_pack magnitude = value & 0x7fffU;
    const bits_pack normal = (magnitude << 13U) + (112U << 23U);
    const bits_pack special = magnitude << 13U | 0x7f80'0000U;
    const auto units = __builtin_convertvector(__builtin_bit_cast(signed_pack, magnitude), float_pack);
    const auto subnormal = __builtin_bit_cast(bits_pack, units * 0x1p-24F);
    const bits_pack finite = magnitude < 0x400U ? subnormal : normal;
    return __builtin_bit_cast(float_pack, (magnitude >= 0x7c00U ? special : finite) | (value & 0x8000U) << 16U);
  }

  static bits_pack bits_of(float_pack each) {
    const auto value = __builtin_bit_cast(bits_pack, each);
    const bits_pack magnitude = value & 0x7fff'ffffU;
    const bits_pack rebased = magnitude - (112U << 23U);
    const bits_pack normal = (rebased + 0xfffU + (rebased >> 13U & 1U)) >> 13U;
    // One unit of 0.5F's mantissa is one of the subnormal numbers': the addition rounds.
    const auto sum = __builtin_bit_cast(float_pack, magnitude) + 0.5F;
    const bits_pack subnormal = __builtin_bit_cast(bits_pack, sum) - __builtin_bit_cast(std::uint32_t, 0.5F);
    const bits_pack finite = magnitude < 0x3880'0000U ? subnormal : normal;
    const bits_pack not_nan = magnitude >= 0x4780'0000U ? bits_pack{} + 0x7c00U : finite;
    const bits_pack quiet = 0x7e00U | (magnitude >> 13U & 0x3ffU);
    return (magnitude > 0x7f80'0000U ? quiet : not_nan) | (value >> 16U & 0x8000U);
  }
};

#endif

}  // namespace
}  // namespace muster::detail
