// SPDX-License-Identifier: BSL-1.0
#pragma once

// What combine is to give, one element after the other and as plainly as can be.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <muster/collectives/reduction.hpp>

#include "element_kinds.hpp"
#include "quick_random.hpp"

namespace muster::test {

/// One byte for each bool: a std::vector<bool> has none to point to.
template <class T>
using stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
template <class T>
using column = std::vector<stored<T>>;

template <class T>
const std::byte* bytes_of(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

template <class T>
T random_value(quick_random& random) {
  // Of some bits only, so that products of floats are seldom exact and never overflow.
  const auto number = [&random] { return random.between(-3, 3); };
  if constexpr (is_complex<T>) {
    using part = typename T::value_type;
    const auto real = static_cast<part>(number());
    return {real, static_cast<part>(number())};
  } else if constexpr (is_half<T>) {
    return T(static_cast<float>(number()));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(number());
  } else if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 1;
  } else {
    return static_cast<T>(random());
  }
}

template <class T>
std::vector<column<T>> random_values(std::size_t ranks, std::size_t count) {
  quick_random random(ranks * 1000 + count);
  std::vector<column<T>> values(ranks);
  for (auto& each : values) {
    each.reserve(count);
    for (std::size_t index = 0; index < count; ++index) each.push_back(random_value<T>(random));
  }
  return values;
}

__extension__ using i128 = __int128;
__extension__ using u128 = unsigned __int128;

/// Of what wraps around, without undefined behaviour. Not for complex numbers.
template <class T>
T join_integers(reduction_op op, T a, T b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (op) {
    case reduction_op::sum: return static_cast<T>(x + y);
    case reduction_op::prod: return static_cast<T>(x * y);
    case reduction_op::min: return std::min(a, b);
    case reduction_op::max: return std::max(a, b);
    case reduction_op::band: return static_cast<T>(x & y);
    case reduction_op::bor: return static_cast<T>(x | y);
    default: return static_cast<T>(x ^ y);
  }
}

template <class Float>
Float join_floats(reduction_op op, Float a, Float b) {
  switch (op) {
    case reduction_op::prod: return a * b;
    case reduction_op::min: return std::min(a, b);
    case reduction_op::max: return std::max(a, b);
    default: return a + b;
  }
}

template <class Complex>
Complex join_complex(reduction_op op, Complex a, Complex b) {
  if (op != reduction_op::prod) return a + b;
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
T reference_of_integers(reduction_op op, const std::vector<T>& of_ranks) {
  using wide = std::conditional_t<std::is_signed_v<T>, i128, u128>;
  if (op == reduction_op::avg) {
    wide sum = 0;
    for (const T each : of_ranks) sum += static_cast<wide>(each);
    return static_cast<T>(sum / static_cast<wide>(of_ranks.size()));
  }
  T joined = of_ranks[0];
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) joined = join_integers(op, joined, of_ranks[rank]);
  return joined;
}

template <class T>
T reference_of_element(reduction_op op, const column<T>& of_ranks) {
  const auto ranks = of_ranks.size();
  if constexpr (std::is_same_v<T, bool>) {
    bool joined = of_ranks[0] != 0;
    if (op == reduction_op::sum) op = reduction_op::bor;
    for (std::size_t rank = 1; rank < ranks; ++rank) joined = join_integers<bool>(op, joined, of_ranks[rank] != 0);
    return joined;
  } else if constexpr (std::is_integral_v<T>) {
    return reference_of_integers(op, of_ranks);
  } else if constexpr (is_complex<T>) {
    auto joined = of_ranks[0];
    for (std::size_t rank = 1; rank < ranks; ++rank) joined = join_complex(op, joined, of_ranks[rank]);
    return op == reduction_op::avg ? joined / static_cast<typename T::value_type>(ranks) : joined;
  } else {
    using wide = std::conditional_t<is_half<T>, float, T>;
    auto joined = static_cast<wide>(of_ranks[0]);
    for (std::size_t rank = 1; rank < ranks; ++rank) joined = join_floats<wide>(op, joined, of_ranks[rank]);
    return T(op == reduction_op::avg ? joined / static_cast<wide>(ranks) : joined);
  }
}

template <class T>
column<T> reference(reduction_op op, const std::vector<column<T>>& inputs) {
  column<T> expected;
  for (std::size_t index = 0; index < inputs[0].size(); ++index) {
    column<T> of_ranks;
    for (const auto& each : inputs) of_ranks.push_back(each[index]);
    expected.push_back(reference_of_element<T>(op, of_ranks));
  }
  return expected;
}

}  // namespace muster::test
