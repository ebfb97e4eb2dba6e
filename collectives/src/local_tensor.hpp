// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>

namespace muster::detail {

/// Whether its elements can be read and written here as they are: in a row, in memory of the host.
[[nodiscard]] inline bool is_row(const tensor& what) { return what.is_contiguous() && what.device().is_cpu(); }

/// Whether other ranks can too: in that domain besides.
[[nodiscard]] inline bool is_reachable(const tensor& what, const domain& where) {
  return what.size() == 0 || (is_row(what) && what.is_shared() && what.storage()->block().owner()->owner() == &where);
}

/// Contiguous memory of that domain, which all its participants can reach. Requires: there can be such a tensor.
[[nodiscard]] tensor shared_in(domain& where, dtype type, const tensor_shape& shape);

/// This rank's contribution. Where others cannot reach it a copy that they can is made, on request.
///
/// Thread safety: an object belongs to one thread.
class local_input {
public:
  explicit local_input(const tensor& what) : what_(what) {}

  /// Its elements in a row, wherever they are.
  void copy_to(std::byte* room) const;
  [[nodiscard]] const tensor& reachable(domain& where);
  /// A copy in any case, which others can reach.
  [[nodiscard]] const tensor& copied(domain& where);

private:
  const tensor& what_;
  tensor copy_;
};

/// Where this rank's result goes. Where others cannot reach it, or it is not contiguous, it is computed elsewhere and
/// copied at the end.
///
/// Thread safety: an object belongs to one thread.
class local_output {
public:
  explicit local_output(const tensor& what) : what_(what) {}

  [[nodiscard]] const tensor& reachable(domain& where);
  /// The same, for an operation that computes each element from its counterparts: where the result takes the place of
  /// an input, what stands in for that serves.
  [[nodiscard]] const tensor& reachable(domain& where, const tensor& input, const tensor& stands_in);
  /// Some contiguous memory of that size, which others need not reach.
  [[nodiscard]] std::byte* contiguous();
  /// After the result is there.
  void finish() const;

private:
  const tensor& what_;
  tensor stand_in_;
};

}  // namespace muster::detail
