// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor_compare.hpp>

#include <cmath>
#include <string_view>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

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
  if (!a.device().is_cpu() || !b.device().is_cpu()) return all_pairs(a.to(device::cpu()), b.to(device::cpu()), same);
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

// ---- element by element

namespace {

std::string_view name_of(comparison how) {
  switch (how) {
    case comparison::equal: return "equal";
    case comparison::not_equal: return "not_equal";
    case comparison::less: return "less";
    case comparison::less_equal: return "less_equal";
    case comparison::greater: return "greater";
    case comparison::greater_equal: return "greater_equal";
  }
  return "?";
}

[[noreturn]] void refuse(const tensor& a, comparison how, const tensor& b, const char* expected) {
  throw error(errc::invalid_argument, text("compare ", name_of(how), ": ", a.dtype(), " of shape ", a.shape(), " with ",
                                           b.dtype(), " of shape ", b.shape(), ": ", expected));
}

// The one element of `what`, as often as that shape wants it.
tensor repeated(const tensor& what, const tensor_shape& shape) {
  tensor_strides strides;
  for (std::size_t dimension = 0; dimension < shape.size(); ++dimension) strides.push_back(0);
  const auto first = what.is_contiguous() ? what : what.clone();
  const auto offset = static_cast<std::size_t>(first.data() - first.storage()->bytes().data());
  return tensor::over(first.storage(), what.dtype(), shape, strides, offset);
}

// As it is compared fastest, and exactly.
template <class T>
auto plain(T value) {
  if constexpr (detail::is_one_of<T, f16, bf16>)
    return static_cast<float>(value);
  else
    return value;
}

template <class T>
bool holds(const T& left, comparison how, const T& right) {
  if (how == comparison::equal) return left == right;
  if (how == comparison::not_equal) return left != right;
  if constexpr (!detail::is_complex<T>) {
    if (how == comparison::less) return left < right;
    if (how == comparison::less_equal) return left <= right;
    if (how == comparison::greater) return left > right;
    if (how == comparison::greater_equal) return left >= right;
  }
  return false;
}

// Until `what`, which is told whether an element is zero, returns false.
template <class F>
void for_each_element(const tensor& of, const F& what) {
  detail::visit_dtype(of.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto run = [&](detail::runs<1> at, std::size_t count) {
      for (; count != 0; --count, at[0].first += at[0].step_bytes) {
        if (!what(plain(*reinterpret_cast<const T*>(at[0].first)) == plain(T{}))) return false;
      }
      return true;
    };
    static_cast<void>(detail::for_each_run(run, of));
  });
}

}  // namespace

tensor compare(const tensor& a, comparison how, const tensor& b) {
  if (a.dtype() != b.dtype()) refuse(a, how, b, "convert one of them to the other's dtype");
  if (a.shape() != b.shape() && b.size() != 1)
    refuse(a, how, b, "the shapes must be the same, or the second have one element");
  const bool orders = how != comparison::equal && how != comparison::not_equal;
  if (orders && (a.dtype() == dtype::c64 || a.dtype() == dtype::c128))
    refuse(a, how, b, "complex numbers have no order");
  const auto others = a.shape() == b.shape() || a.size() == 0 ? b : repeated(b, a.shape());
  const auto made = tensor::empty(dtype::boolean, a.shape(), memory::local);
  if (a.size() == 0) return made;
  detail::visit_dtype(a.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto run = [how](detail::runs<3> at, std::size_t count) {
      for (; count != 0; --count) {
        *reinterpret_cast<bool*>(at[0].first) = holds(plain(*reinterpret_cast<const T*>(at[1].first)), how,
                                                      plain(*reinterpret_cast<const T*>(at[2].first)));
        for (auto& each : at) each.first += each.step_bytes;
      }
      return true;
    };
    static_cast<void>(detail::for_each_run(run, made, a, others));
  });
  return made;
}

std::size_t count_nonzero(const tensor& what) {
  std::size_t count = 0;
  for_each_element(what, [&count](bool is_zero) {
    count += is_zero ? 0 : 1;
    return true;
  });
  return count;
}

bool any(const tensor& what) {
  bool found = false;
  for_each_element(what, [&found](bool is_zero) {
    found = !is_zero;
    return is_zero;
  });
  return found;
}

bool all(const tensor& what) {
  bool found = true;
  for_each_element(what, [&found](bool is_zero) {
    found = !is_zero;
    return !is_zero;
  });
  return found;
}

}  // namespace muster
