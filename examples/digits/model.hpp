// SPDX-License-Identifier: BSL-1.0
#pragma once

// Two models that tell digits apart, as functions of images and weights. Nothing here knows of ranks: an image's row
// counts as any other's, so that the mean over all rows is that of the parts' means, weighted by their rows.
//
//     softmax    p = softmax(x·w + b)
//     network    p = softmax(max(0, x·w1 + b1)·w2 + b2)
//
// The loss is the mean of -log p[label].
//
// Thread safety: safe.

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include <muster/device/tensor.hpp>

namespace digits {

using muster::tensor;

/// Loss; how many were right; and the loss' gradient by each of the weights.
[[nodiscard]] std::tuple<double, std::int64_t, tensor, tensor> softmax_gradients(const tensor& images,
                                                                                 const tensor& labels, const tensor& w,
                                                                                 const tensor& b);
[[nodiscard]] std::tuple<double, std::int64_t, tensor, tensor, tensor, tensor> network_gradients(
    const tensor& images, const tensor& labels, const tensor& w1, const tensor& b1, const tensor& w2, const tensor& b2);

/// Loss, and what the images are taken for: i32, (n).
[[nodiscard]] std::tuple<double, tensor> softmax_guesses(const tensor& images, const tensor& labels, const tensor& w,
                                                         const tensor& b);
[[nodiscard]] std::tuple<double, tensor> network_guesses(const tensor& images, const tensor& labels, const tensor& w1,
                                                         const tensor& b1, const tensor& w2, const tensor& b2);

/// What to begin with: w and b.
[[nodiscard]] std::vector<tensor> softmax_weights();
/// Likewise: w1, b1, w2 and b2, the same for the same seed.
[[nodiscard]] std::vector<tensor> network_weights(std::size_t hidden, std::uint64_t seed);

}  // namespace digits
