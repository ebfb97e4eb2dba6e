// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ostream>

#include <muster/device/tensor.hpp>

namespace muster {

/// What a tensor is before it is there: its dtype and its shape.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct graph_form {
  muster::dtype type = muster::dtype::f32;  ///< of its elements
  tensor_shape shape{};                     ///< its sizes; none: one element

  /// That of a tensor which is there.
  [[nodiscard]] static graph_form of(const tensor& what) { return {what.dtype(), what.shape()}; }

  [[nodiscard]] friend bool operator==(const graph_form& a, const graph_form& b) noexcept = default;

  /// As in "f32 (500, 500)".
  friend std::ostream& operator<<(std::ostream& out, const graph_form& form) {
    return out << form.type << ' ' << form.shape;
  }
};

}  // namespace muster
