// SPDX-License-Identifier: BSL-1.0
// Packs: values that fill a register together, and what each instruction set does with them in its own way. Part of
// combine_kernels.ipp, which says what may be used here.

namespace muster::detail {
namespace {

// Every processor with AVX2 has F16C, but flags may ask for one alone.
#if defined(__AVX2__) && defined(__F16C__)
#define MUSTER_COMBINE_AVX2
#endif

#if defined(MUSTER_COMBINE_AVX2)
constexpr std::size_t register_bytes = 32;
#else
constexpr std::size_t register_bytes = 16;
#endif

constexpr std::size_t line_bytes = 64;

template <class T, std::size_t Lanes>
struct pack_of {
  typedef T type __attribute__((vector_size(Lanes * sizeof(T))));
};
template <class T>
struct pack_of<T, 1> {
  using type = T;
};
template <class T, std::size_t Lanes>
using pack = typename pack_of<T, Lanes>::type;

/// What a pack of halves becomes: two packs, of every element once. Which has which is the instruction set's affair.
template <class Pack>
struct twin {
  Pack low;
  Pack high;
};

using halves = pack<std::uint16_t, register_bytes / 2>;
using float_pack = pack<float, register_bytes / 4>;
using bits_pack = pack<std::uint32_t, register_bytes / 4>;

/// All bits or none, for each lane.
template <class Pack>
auto is_nan(Pack each) {
  return each != each;  // NOLINT(misc-redundant-expression): a NaN alone is unequal to itself
}

/// Requires: `to` is aligned to the pack's size.
template <class Pack>
void stream(std::byte* to, const Pack& from) {
#if defined(MUSTER_COMBINE_AVX2)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, from));
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), __builtin_bit_cast(__m128i, from));
#else
  __builtin_memcpy(to, &from, sizeof(from));
#endif
}

/// Tells the processor that the line will be written. What is beyond an array's end does no harm: it never faults.
void expect_write(const std::byte* line) {
#if defined(__PRFCHW__) || !defined(__SSE2__)
  __builtin_prefetch(line, 1);
#else
  // It could only ask for a copy to read, which costs more than it gains.
  static_cast<void>(line);
#endif
}

#if defined(MUSTER_COMBINE_AVX2)

/// With zeros below.
twin<bits_pack> raised(halves each) {
  const auto all = __builtin_bit_cast(__m256i, each);
  const auto zero = _mm256_setzero_si256();
  return {__builtin_bit_cast(bits_pack, _mm256_unpacklo_epi16(zero, all)),
          __builtin_bit_cast(bits_pack, _mm256_unpackhi_epi16(zero, all))};
}

/// The numbers that twins are the bits of, as halves. Requires: no more than 16 bits each.
halves narrowed(const twin<bits_pack>& each) {
  return __builtin_bit_cast(
      halves, _mm256_packus_epi32(__builtin_bit_cast(__m256i, each.low), __builtin_bit_cast(__m256i, each.high)));
}

#elif defined(__SSE2__)

/// With zeros above.
twin<bits_pack> widened(halves each) {
  const auto all = __builtin_bit_cast(__m128i, each);
  const auto zero = _mm_setzero_si128();
  return {__builtin_bit_cast(bits_pack, _mm_unpacklo_epi16(all, zero)),
          __builtin_bit_cast(bits_pack, _mm_unpackhi_epi16(all, zero))};
}

twin<bits_pack> raised(halves each) {
  const auto all = __builtin_bit_cast(__m128i, each);
  const auto zero = _mm_setzero_si128();
  return {__builtin_bit_cast(bits_pack, _mm_unpacklo_epi16(zero, all)),
          __builtin_bit_cast(bits_pack, _mm_unpackhi_epi16(zero, all))};
}

// SSE2 narrows numbers with a sign only.
__m128i with_sign(bits_pack each) { return _mm_srai_epi32(_mm_slli_epi32(__builtin_bit_cast(__m128i, each), 16), 16); }

halves narrowed(const twin<bits_pack>& each) {
  return __builtin_bit_cast(halves, _mm_packs_epi32(with_sign(each.low), with_sign(each.high)));
}

#else

twin<bits_pack> widened(halves each) {
  return {__builtin_convertvector(__builtin_shufflevector(each, each, 0, 1, 2, 3), bits_pack),
          __builtin_convertvector(__builtin_shufflevector(each, each, 4, 5, 6, 7), bits_pack)};
}

twin<bits_pack> raised(halves each) {
  const auto wide = widened(each);
  return {wide.low << 16U, wide.high << 16U};
}

halves narrowed(const twin<bits_pack>& each) {
  using quarter = pack<std::uint16_t, 4>;
  return __builtin_shufflevector(__builtin_convertvector(each.low, quarter),
                                 __builtin_convertvector(each.high, quarter), 0, 1, 2, 3, 4, 5, 6, 7);
}

#endif

}  // namespace
}  // namespace muster::detail
