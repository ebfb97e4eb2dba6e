// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include <muster/base/requirements.hpp>

namespace muster {

/// The elements of a tensor by their indices, for inner loops: a pointer, N sizes and N strides.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const. The elements need their own
/// discipline.
/// Lifetime: borrows the tensor's memory: a tensor of it must outlive the view.
template <class T, std::size_t N>
class tensor_view {
public:
  /// Requires: the elements that sizes and strides describe lie in the same memory.
  tensor_view(T* first, const std::array<std::size_t, N>& sizes, const std::array<std::ptrdiff_t, N>& strides) noexcept
      : first_(first), sizes_(sizes), strides_(strides) {}

  /// Unchecked. Requires: every index is less than the size of its dimension.
  template <class... Index>
    requires(sizeof...(Index) == N && (std::is_integral_v<Index> && ...))
  [[nodiscard]] T& operator()(Index... index) const noexcept {
    std::size_t dimension = 0;
    std::ptrdiff_t offset = 0;
    ((offset += static_cast<std::ptrdiff_t>(index) * strides_[dimension++]), ...);
    return first_[offset];
  }

  /// How many elements there are along a dimension. Requires: dimension < N.
  [[nodiscard]] std::size_t size(std::size_t dimension) const noexcept { return sizes_[dimension]; }
  /// How many elements further the next along a dimension is. Requires: dimension < N.
  [[nodiscard]] std::ptrdiff_t stride(std::size_t dimension) const noexcept { return strides_[dimension]; }
  [[nodiscard]] T* data() const noexcept { return first_; }

private:
  T* first_;
  std::array<std::size_t, N> sizes_;
  std::array<std::ptrdiff_t, N> strides_;
};

}  // namespace muster
