// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor_compare.hpp>

#include <cmath>

#include "visit.hpp"

namespace muster {

namespace {

// Exact for all integers and all real numbers that a tensor can hold.
template <class T>
auto comparable(T value) {
  if constexpr (detail::is_complex<T>)
    return std::complex<double>(value);
  else
    return static_cast<long double>(value);
}

template <class Same>
bool all_pairs(const tensor& a, const tensor& b, const Same& same) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  return detail::visit_dtype(a.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto all_same = [&](detail::runs<2> at, std::size_t count) {
      for (; count != 0; --count) {
        const auto left = comparable(*reinterpret_cast<const T*>(at[0].first));
        const auto right = comparable(*reinterpret_cast<const T*>(at[1].first));
        if (!same(left, right)) return false;
        for (auto& each : at) each.first += each.step_bytes;
      }
      return true;
    };
    return detail::for_each_run(all_same, a, b);
  });
}

}  // namespace

bool equal(const tensor& a, const tensor& b) {
  return all_pairs(a, b, [](const auto& left, const auto& right) { return left == right; });
}

bool all_close(const tensor& a, const tensor& b, closeness how) {
  return all_pairs(a, b, [how](const auto& left, const auto& right) {
    if (left == right) return true;  // infinities
    const auto size = std::abs(right);
    return std::isfinite(size) && std::abs(left - right) <= how.absolute + how.relative * size;
  });
}

}  // namespace muster
