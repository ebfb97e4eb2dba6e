// SPDX-License-Identifier: BSL-1.0
#pragma once

// The network of examples/digits/model.hpp, computed on the GPU that the tensors lie on.
//
// Thread safety: one thread of a process at a time.

#include <cstdint>
#include <tuple>

#include <muster/device/tensor.hpp>
#include <muster/parallel/rank_context.hpp>

namespace gpu_digits {

using muster::tensor;

/// Loss; how many were right; and the loss' gradient by w1, b1, w2 and b2, on the device.
[[nodiscard]] std::tuple<double, std::int64_t, tensor, tensor, tensor, tensor> network_gradients(
    const muster::rank_context& context, const tensor& images, const tensor& labels, const tensor& w1, const tensor& b1,
    const tensor& w2, const tensor& b2);

}  // namespace gpu_digits
