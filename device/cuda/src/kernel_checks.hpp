// SPDX-License-Identifier: BSL-1.0
#pragma once

// What kernel_set refuses, and what it hands to kernels in their words.
//
// Thread safety: pure functions; safe.

#include <cstddef>
#include <span>

#include "kernel_arguments.hpp"
#include "kernel_set.hpp"

namespace muster::detail {

// All of these throw errc::invalid_argument, naming what was given and what was expected.

void require_element(const cuda_view& which, std::span<const std::byte> element);
void require_alike(const char* operation, const cuda_view& to, const cuda_view& from);
void require_same_shape(const cuda_view& to, const cuda_view& from);
/// What is written from what was there must be written once: all places are computed at the same time.
void require_no_repeats(const char* operation, const cuda_view& to);
void require_op(dtype type, element_op op);
void require_scalable(const char* operation, dtype type);
void require_scratch(CUdeviceptr scratch, std::size_t bytes, std::size_t needed);
void require_rule(const cuda_rule& rule, const cuda_rule_arrays& arrays);

/// Requires: require_op(some dtype, op) does not throw.
[[nodiscard]] kernel_op kernel_op_of(element_op op) noexcept;

/// What changes nothing that it is joined with. Throws errc::invalid_argument for min and max.
[[nodiscard]] std::span<const std::byte> neutral_element(dtype type, element_op op);

/// Requires: require_rule does not throw.
[[nodiscard]] rule_arguments rule_arguments_of(const cuda_rule& rule, const cuda_rule_arrays& arrays) noexcept;

}  // namespace muster::detail
