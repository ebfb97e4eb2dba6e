// SPDX-License-Identifier: BSL-1.0
#pragma once

// Products of matrices on a GPU, by cuBLAS, for programs that are linked with it (CUDA::cublas); muster is not.
//
//     const auto gpu = muster::cuda_device::open(context.device);
//     muster::multiply(gpu->part<muster::cublas>(), x, w, y);            // y = x·w
//     cublasSgeam(gpu->part<muster::cublas>().handle(), …);              // whatever else it has

#include <algorithm>
#include <cstdint>

#include <cublas_v2.h>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

namespace detail {

/// `uninitialized`: what CUBLAS_STATUS_NOT_INITIALIZED means.
inline void check_cublas(cublasStatus_t status, const char* call, errc uninitialized = errc::invalid_argument) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const auto code = status == CUBLAS_STATUS_ALLOC_FAILED       ? errc::out_of_memory
                    : status == CUBLAS_STATUS_EXECUTION_FAILED ? errc::device_lost
                    : status == CUBLAS_STATUS_NOT_INITIALIZED  ? uninitialized
                                                               : errc::invalid_argument;
  throw error(code, text(call, " failed: ", cublasGetStatusString(status)));
}

inline cudaDataType_t cublas_type(dtype type) {
  switch (type) {
    case dtype::f16: return CUDA_R_16F;
    case dtype::bf16: return CUDA_R_16BF;
    case dtype::f32: return CUDA_R_32F;
    case dtype::f64: return CUDA_R_64F;
    default: throw error(errc::invalid_argument, text("multiply takes f16, bf16, f32 or f64, not ", type));
  }
}

}  // namespace detail

/// A handle of cuBLAS, whose work is given to the device's compute stream: one of the parts of a device.
///
/// Thread safety: as cuBLAS says: one thread at a time.
/// Cost: some milliseconds, and some MiB of the device's memory.
class cublas {
public:
  /// Throws errc::out_of_memory on a device that is full, errc::device_lost on one that is lost.
  explicit cublas(cuda_device& on) : where_(on.where()) {
    const cuda_device::scope current(on);
    const auto status = cublasCreate(&handle_);
    if (status != CUBLAS_STATUS_SUCCESS) static_cast<void>(on.compute().is_idle());  // throws, if the device is lost
    // What cuBLAS says on a full device.
    detail::check_cublas(status, "cublasCreate", errc::out_of_memory);
    detail::check_cublas(cublasSetStream(handle_, on.compute().handle()), "cublasSetStream");
  }
  cublas(const cublas&) = delete;
  cublas& operator=(const cublas&) = delete;
  ~cublas() {
    if (made_in_.is_here()) cublasDestroy(handle_);
  }

  /// Returns the handle, for calls of cuBLAS; what it is given goes to the compute stream. Lifetime: that of this
  /// object.
  [[nodiscard]] cublasHandle_t handle() const noexcept { return handle_; }
  /// Returns the device that it computes on.
  [[nodiscard]] device where() const noexcept { return where_; }

private:
  const process_mark made_in_;
  const device where_;
  cublasHandle_t handle_ = nullptr;
};

/// A matrix in a product: as it is, or transposed.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct factor {
  tensor what;                 ///< the matrix as it is stored
  bool is_transposed = false;  ///< whether its transposed matrix is the factor

  /// The matrix as it is, or transposed. Nothing is copied.
  ///@{
  factor(const tensor& matrix) : what(matrix) {}
  factor(const tensor& matrix, bool transposed) : what(matrix), is_transposed(transposed) {}
  ///@}

  /// Returns the number of rows, or columns, that the factor has in the product: those of the transposed matrix if
  /// is_transposed. Requires: two dimensions.
  ///@{
  [[nodiscard]] std::size_t rows() const { return what.shape()[is_transposed ? 1 : 0]; }
  [[nodiscard]] std::size_t columns() const { return what.shape()[is_transposed ? 0 : 1]; }
  ///@}
};

/// Returns the transposed matrix as a factor. Nothing is copied.
[[nodiscard]] inline factor transposed(const tensor& matrix) { return {matrix, true}; }

namespace detail {

inline void require_on(device where, const tensor& a, const tensor& b, const tensor& product) {
  if (a.device() == where && b.device() == where && product.device() == where) return;
  throw error(errc::invalid_argument,
              text("multiply on ", where, " was given tensors on ", a.device(), ", ", b.device(), " and ",
                   product.device(), ": bring all to ", where, " with to(), or take the cublas part of their device"));
}

}  // namespace detail

/// product ← scale·a·b + keep·product, for contiguous matrices of one type on one device: f16 and bf16 (computed in
/// f32), f32 and f64; over no elements (k = 0) that is keep·product. Throws errc::invalid_argument, with all shapes,
/// for matrices that do not fit together, and with all devices, for those that are not on `by`'s. Requires: the
/// device's context is current (cuda_device::scope).
inline void multiply(cublas& by, const factor& a, const factor& b, const tensor& product, double scale = 1,
                     double keep = 0) {
  const bool are_matrices = a.what.dimensions() == 2 && b.what.dimensions() == 2 && product.dimensions() == 2;
  if (!are_matrices || a.columns() != b.rows() || product.shape() != tensor_shape{a.rows(), b.columns()} ||
      a.what.dtype() != product.dtype() || b.what.dtype() != product.dtype() || !a.what.is_contiguous() ||
      !b.what.is_contiguous() || !product.is_contiguous()) {
    throw error(errc::invalid_argument,
                text("multiply of ", a.what.dtype(), ' ', a.what.shape(), a.is_transposed ? " transposed" : "", " by ",
                     b.what.dtype(), ' ', b.what.shape(), b.is_transposed ? " transposed" : "", " into ",
                     product.dtype(), ' ', product.shape(), ": (n, k) by (k, m) into (n, m) of one dtype are wanted"));
  }
  detail::require_on(by.where(), a.what, b.what, product);
  product.require_writable();
  if (product.size() == 0) return;
  // Rows here are columns there, so that the product there is that of the transposed, in the other order.
  const auto type = detail::cublas_type(product.dtype());
  const bool is_double = product.dtype() == dtype::f64;
  const auto narrow_scale = static_cast<float>(scale);
  const auto narrow_keep = static_cast<float>(keep);
  const void* const by_scale = is_double ? static_cast<const void*>(&scale) : &narrow_scale;
  const void* const by_keep = is_double ? static_cast<const void*>(&keep) : &narrow_keep;
  // Of no columns too cuBLAS wants one.
  const auto leading = [](const tensor& matrix) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(matrix.shape()[1]));
  };
  const auto form = [](const factor& each) { return each.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto pointer = [](const tensor& matrix) { return reinterpret_cast<void*>(matrix.device_address()); };
  detail::check_cublas(cublasGemmEx_64(by.handle(), form(b), form(a), static_cast<std::int64_t>(b.columns()),
                                       static_cast<std::int64_t>(a.rows()), static_cast<std::int64_t>(a.columns()),
                                       by_scale, pointer(b.what), type, leading(b.what), pointer(a.what), type,
                                       leading(a.what), by_keep, pointer(product), type, leading(product),
                                       is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                       "cublasGemmEx");
}

}  // namespace muster
