// SPDX-License-Identifier: BSL-1.0
#include <muster/device/arithmetic.hpp>

#include <muster/base/detail/float_state.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/overlap.hpp>

#include "apart_bytes.hpp"
#include "device_of.hpp"
#include "element_ops.hpp"
#include "visit.hpp"

namespace muster {

namespace {

using detail::joined;
using detail::part_of;
using detail::scaled;
using detail::stepped;
using detail::stored;

// ---- many elements

template <class Op, class T>
void join_run(detail::runs<2> at, std::size_t count) {
  auto& [into, from] = at;
  if (into.step_bytes == sizeof(T) && from.step_bytes == sizeof(T)) {
    auto* const results = reinterpret_cast<stored<T>*>(into.first);
    const auto* const values = reinterpret_cast<const stored<T>*>(from.first);
    for (std::size_t index = 0; index < count; ++index) results[index] = joined<Op, T>(results[index], values[index]);
    return;
  }
  for (; count != 0; --count, into.first += into.step_bytes, from.first += from.step_bytes) {
    auto& result = *reinterpret_cast<stored<T>*>(into.first);
    result = joined<Op, T>(result, *reinterpret_cast<const stored<T>*>(from.first));
  }
}

template <class T>
void scale_run(detail::runs<1> runs, std::size_t count, double by) {
  auto& at = runs[0];
  const auto factor = static_cast<part_of<T>>(by);
  if (at.step_bytes == sizeof(T)) {
    auto* const values = reinterpret_cast<T*>(at.first);
    for (std::size_t index = 0; index < count; ++index) values[index] = scaled(values[index], factor);
    return;
  }
  for (; count != 0; --count, at.first += at.step_bytes) {
    auto& value = *reinterpret_cast<T*>(at.first);
    value = scaled(value, factor);
  }
}

template <class T>
void axpy_run(detail::runs<2> at, std::size_t count, double by) {
  const auto factor = static_cast<part_of<T>>(by);
  auto& [y, x] = at;
  if (y.step_bytes == sizeof(T) && x.step_bytes == sizeof(T)) {
    auto* const results = reinterpret_cast<T*>(y.first);
    const auto* const values = reinterpret_cast<const T*>(x.first);
    for (std::size_t index = 0; index < count; ++index) results[index] = stepped(results[index], factor, values[index]);
    return;
  }
  for (; count != 0; --count, y.first += y.step_bytes, x.first += x.step_bytes) {
    auto& result = *reinterpret_cast<T*>(y.first);
    result = stepped(result, factor, *reinterpret_cast<const T*>(x.first));
  }
}

// ---- what is asked for, and refused

template <class F>
void visit_op(element_op op, const F& what) {
  switch (op) {
    case element_op::sum: return what(detail::add());
    case element_op::prod: return what(detail::multiply());
    case element_op::min: return what(detail::least());
    case element_op::max: return what(detail::greatest());
  }
  throw error(errc::invalid_argument, text("there is no element_op ", static_cast<int>(op)));
}

// Calls `each` with the function that joins runs of elements.
template <class F>
void visit_join(dtype type, element_op op, const F& each) {
  visit_op(op, [&]<class Op>(Op) {
    detail::visit_dtype(type, [&]<class T>(std::type_identity<T>) {
      if constexpr (detail::has<Op, T>) {
        each(join_run<Op, T>);
      } else {
        throw error(errc::invalid_argument,
                    text("elements of dtype ", type, " have no ", Op::name, ": complex numbers have no order"));
      }
    });
  });
}

template <class F>
void visit_scalable(const char* operation, dtype type, const F& each) {
  detail::visit_dtype(type, [&]<class T>(std::type_identity<T> which) {
    if constexpr (std::is_integral_v<T>) {
      throw error(errc::invalid_argument, text(operation, " takes f16, bf16, f32, f64, c64 or c128, not ", type,
                                               ": convert() to one of these first"));
    } else {
      each(which);
    }
  });
}

void require_alike(const char* operation, const tensor& to, const tensor& from) {
  if (to.dtype() == from.dtype() && to.shape() == from.shape()) return;
  throw error(errc::invalid_argument, text(operation, " of ", from.dtype(), ' ', from.shape(), " into ", to.dtype(),
                                           ' ', to.shape(), ": dtype and shape must be the same"));
}

// A device has nothing to do for tensors without elements.
template <class F>
void given_to(device_operations& device, const tensor& which, const F& what) {
  if (which.size() != 0) what(device);
}

void require_as_many(const char* operation, dtype type, std::size_t to, std::size_t from) {
  if (to == from) return;
  throw error(errc::invalid_argument, text(operation, " of ", from / dtype_size(type), " elements into ",
                                           to / dtype_size(type), ": there must be as many of both"));
}

}  // namespace

void accumulate(const tensor& into, const tensor& from, element_op op) {
  require_alike("accumulate", into, from);
  into.require_writable();
  auto* const there = detail::one_device_of("accumulate", into, from);
  visit_join(into.dtype(), op, [&](auto* join) {
    const detail::apart_source source(into, from);
    if (there != nullptr) return given_to(*there, into, [&](auto& device) { device.accumulate(into, *source, op); });
    const auto each = [join](detail::runs<2> at, std::size_t count) { return join(at, count), true; };
    in_fixed_float_state([&] { detail::for_each_run(each, into, *source); });
  });
}

void scale(const tensor& which, double factor) {
  which.require_writable();
  auto* const there = detail::device_of(which);
  visit_scalable("scale", which.dtype(), [&]<class T>(std::type_identity<T>) {
    if (there != nullptr) return given_to(*there, which, [&](auto& device) { device.scale(which, factor); });
    const auto each = [factor](detail::runs<1> at, std::size_t count) { return scale_run<T>(at, count, factor), true; };
    in_fixed_float_state([&] { detail::for_each_run(each, which); });
  });
}

void axpy(double factor, const tensor& x, const tensor& y) {
  require_alike("axpy", y, x);
  y.require_writable();
  auto* const there = detail::one_device_of("axpy", y, x);
  visit_scalable("axpy", y.dtype(), [&]<class T>(std::type_identity<T>) {
    const detail::apart_source source(y, x);
    if (there != nullptr) return given_to(*there, y, [&](auto& device) { device.axpy(factor, *source, y); });
    const auto each = [factor](detail::runs<2> at, std::size_t count) { return axpy_run<T>(at, count, factor), true; };
    in_fixed_float_state([&] { detail::for_each_run(each, y, *source); });
  });
}

namespace detail {

void accumulate_elements(dtype type, std::span<std::byte> into, std::span<const std::byte> from, element_op op) {
  require_as_many("accumulate", type, into.size(), from.size());
  visit_join(type, op, [&](auto* join) {
    const apart_bytes source(into, from, true);
    in_fixed_float_state(
        [&] { join({adjacent(type, into.data()), adjacent(type, source.data())}, into.size() / dtype_size(type)); });
  });
}

void scale_elements(dtype type, std::span<std::byte> which, double factor) {
  visit_scalable("scale", type, [&]<class T>(std::type_identity<T>) {
    in_fixed_float_state([&] { scale_run<T>({adjacent(type, which.data())}, which.size() / sizeof(T), factor); });
  });
}

void axpy_elements(dtype type, double factor, std::span<const std::byte> x, std::span<std::byte> y) {
  require_as_many("axpy", type, y.size(), x.size());
  visit_scalable("axpy", type, [&]<class T>(std::type_identity<T>) {
    const apart_bytes source(y, x, true);
    in_fixed_float_state(
        [&] { axpy_run<T>({adjacent(type, y.data()), adjacent(type, source.data())}, y.size() / sizeof(T), factor); });
  });
}

}  // namespace detail

}  // namespace muster
