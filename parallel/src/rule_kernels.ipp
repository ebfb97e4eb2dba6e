// SPDX-License-Identifier: BSL-1.0
// The kernels of rules, for the instruction set that the unit which includes this is compiled for: plain loops over
// pieces of arrays, which the compiler makes vectors of.
//
// All of it is in an anonymous namespace, and it calls no inline function of other headers, not even of std: of those
// the linker keeps one for the whole program, and if that were the AVX2 unit's, older processors would stop at it.
#include <cstddef>
#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "rule_kernel.hpp"

// clang-format off: in this order, each uses those before
#include "rule_formats.ipp"
#include "rule_updates.ipp"
// clang-format on

namespace muster::detail {
namespace {

/// Elements of an array from `first` on, as they lie in memory.
template <class Format>
const std::byte* from(const std::byte* array, std::size_t first) {
  return array + first * sizeof(typename Format::element);
}

/// The first gradient is not added to 0: that would take the sign off -0.
template <class Format>
void sum_gradients(const rule_job& job, std::size_t first, piece<typename Format::wide>& here) {
  using wide = typename Format::wide;
  for (std::size_t rank = 0; rank < job.gradient_count; ++rank) {
    auto* const sum = here.gradient;
    const auto weight = static_cast<wide>(job.weights[rank]);
    const auto start = [sum, weight](std::size_t at, wide each)
                           __attribute__((always_inline)) { sum[at] = weight * each; };
    const auto add = [sum, weight](std::size_t at, wide each)
                         __attribute__((always_inline)) { sum[at] += weight * each; };
    const auto* const gradient = from<Format>(job.gradients[rank], first);
    rank == 0 ? each_element<Format>(gradient, here.count, start) : each_element<Format>(gradient, here.count, add);
  }
}

template <class Format>
void load(const rule_job& job, std::size_t first, piece<typename Format::wide>& here) {
  using wide = typename Format::wide;
  if (job.numbers.kind == rule_kind::assign) return;
  auto* const values = here.value;
  each_element<Format>(from<Format>(job.value, first), here.count,
                       [values](std::size_t at, wide each) __attribute__((always_inline)) { values[at] = each; });
  for (std::size_t state = 0; state < job.state_count; ++state) {
    __builtin_memcpy(here.states[state], job.old_states[state] + first * sizeof(wide), here.count * sizeof(wide));
  }
}

/// What is overwritten in place is in the caches already: a streaming store would throw it out of them first.
stores in_place_or(stores how, const std::byte* now, const std::byte* before) {
  return now == before ? stores::normal : how;
}

template <class Format>
void save(const rule_job& job, std::size_t first, piece<typename Format::wide>& here) {
  using wide = typename Format::wide;
  const auto* const values = rounded<Format>(here);
  const auto size = sizeof(typename Format::element);
  for (std::size_t each = 0; each < job.value_count; ++each) {
    const auto how = in_place_or(job.how, job.new_values[each], job.value);
    put(job.new_values[each] + first * size, values, here.count * size, how);
  }
  for (std::size_t state = 0; state < job.state_count; ++state) {
    const auto how = in_place_or(job.how, job.new_states[state], job.old_states[state]);
    const auto* const values_of_state = reinterpret_cast<const std::byte*>(here.states[state]);
    put(job.new_states[state] + first * sizeof(wide), values_of_state, here.count * sizeof(wide), how);
  }
}

template <class Format>
void run(const rule_job& job) {
  using wide = typename Format::wide;
  const auto update = find_update<wide>(job.numbers.kind);
  const numbers_in<wide> numbers(job.numbers);
  piece<wide> here;
  for (std::size_t first = 0; first < job.count; first += here.count) {
    const auto left = job.count - first;
    here.count = left < piece<wide>::most ? left : piece<wide>::most;
    sum_gradients<Format>(job, first, here);
    load<Format>(job, first, here);
    update(numbers, here);
    save<Format>(job, first, here);
  }
}

rule_kernel find_kernel(dtype type) {
  switch (type) {
    case dtype::f16: return run<f16_format>;
    case dtype::bf16: return run<bf16_format>;
    case dtype::f32: return run<plain<float>>;
    case dtype::f64: return run<plain<double>>;
    default: return nullptr;
  }
}

}  // namespace
}  // namespace muster::detail
