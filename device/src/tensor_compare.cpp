// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor_compare.hpp>

#include <cmath>
#include <string_view>

#include <muster/base/detail/float_state.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "layout.hpp"
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

// As it is compared fastest, and exactly.
template <class T>
auto plain(T value) {
  if constexpr (detail::is_one_of<T, f16, bf16>)
    return static_cast<float>(value);
  else
    return value;
}

template <class T>
T element_at(const std::byte* place) {
  return *reinterpret_cast<const detail::stored<T>*>(place);
}

// What lies on a device is copied.
tensor here(const tensor& what) { return what.device().is_cpu() ? what : what.to(device::cpu()); }

template <class Same>
bool all_pairs(const tensor& a, const tensor& b, const Same& same) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const auto here_a = here(a);
  const auto here_b = here(b);
  return detail::visit_dtype(a.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto all_same = [&](detail::runs<2> at, std::size_t count) {
      for (; count != 0; --count) {
        if (!same(element_at<T>(at[0].first), element_at<T>(at[1].first))) return false;
        for (auto& each : at) each.first += each.step_bytes;
      }
      return true;
    };
    return detail::for_each_run(all_same, here_a, here_b);
  });
}

template <class T>
bool is_nan(const T& value) {
  if constexpr (detail::is_complex<T>)
    return std::isnan(value.real()) || std::isnan(value.imag());
  else
    return std::isnan(value);
}

template <class T>
bool same(const T& left, const T& right, nans how) {
  return left == right || (how == nans::same && is_nan(left) && is_nan(right));
}

template <class T>
bool close(const T& left, const T& right, const closeness& how) {
  if (same(left, right, how.nans)) return true;
  const auto size = std::abs(right);
  return std::isfinite(size) && std::abs(left - right) <= how.absolute + how.relative * size;
}

}  // namespace

bool equal(const tensor& a, const tensor& b, nans how) {
  return in_fixed_float_state([&] {
    return all_pairs(a, b, [how](const auto& left, const auto& right) { return same(plain(left), plain(right), how); });
  });
}

bool all_close(const tensor& a, const tensor& b, closeness how) {
  return in_fixed_long_double_state([&] {
    return all_pairs(
        a, b, [&how](const auto& left, const auto& right) { return close(comparable(left), comparable(right), how); });
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

[[noreturn]] void refuse(std::string_view what, const tensor& a, const tensor& b, const char* expected) {
  throw error(errc::invalid_argument, text(what, ": ", a.dtype(), " of shape ", a.shape(), " with ", b.dtype(),
                                           " of shape ", b.shape(), ": ", expected));
}

// Calls `element` with each two elements, and keeps what that says. `what` is its name in errors.
template <class Element>
tensor map_pairs(std::string_view what, const tensor& a, const tensor& b, const Element& element) {
  if (a.dtype() != b.dtype()) refuse(what, a, b, "convert one of them to the other's dtype");
  const auto shape = detail::broadcast(a.shape(), b.shape());
  if (!shape) {
    refuse(what, a, b, "from the last dimension on, each two sizes must be the same, or one of them be 1");
  }
  const auto here_a = here(a);
  const auto here_b = here(b);
  const auto made = tensor::empty(dtype::boolean, *shape, memory::local);
  detail::visit_dtype(a.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto run = [&element](detail::runs<3> at, std::size_t count) {
      for (; count != 0; --count) {
        *reinterpret_cast<detail::stored_bool*>(at[0].first) =
            element(element_at<T>(at[1].first), element_at<T>(at[2].first));
        for (auto& each : at) each.first += each.step_bytes;
      }
      return true;
    };
    static_cast<void>(detail::for_each_run(run, made, here_a.broadcast_to(*shape), here_b.broadcast_to(*shape)));
  });
  return made;
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
void for_each_element(const tensor& there, const F& what) {
  const auto of = here(there);
  in_fixed_float_state([&] {
    detail::visit_dtype(of.dtype(), [&]<class T>(std::type_identity<T>) {
      const auto run = [&](detail::runs<1> at, std::size_t count) {
        for (; count != 0; --count, at[0].first += at[0].step_bytes) {
          if (!what(plain(element_at<T>(at[0].first)) == plain(T{}))) return false;
        }
        return true;
      };
      static_cast<void>(detail::for_each_run(run, of));
    });
  });
}

}  // namespace

tensor compare(const tensor& a, comparison how, const tensor& b) {
  const auto what = text("compare ", name_of(how));
  const bool orders = how != comparison::equal && how != comparison::not_equal;
  if (orders && (a.dtype() == dtype::c64 || a.dtype() == dtype::c128))
    refuse(what, a, b, "complex numbers have no order");
  return in_fixed_float_state([&] {
    return map_pairs(what, a, b,
                     [how](const auto& left, const auto& right) { return holds(plain(left), how, plain(right)); });
  });
}

tensor is_close(const tensor& a, const tensor& b, closeness how) {
  return in_fixed_long_double_state([&] {
    return map_pairs("is_close", a, b, [&how](const auto& left, const auto& right) {
      return close(comparable(left), comparable(right), how);
    });
  });
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
