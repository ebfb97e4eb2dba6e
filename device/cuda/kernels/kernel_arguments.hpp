// SPDX-License-Identifier: BSL-1.0
#pragma once

// What kernels are given: one argument each, made by the host.

#include <cstddef>
#include <cstdint>

namespace muster::detail {

/// Elements of two arrays in pairs: operand 0 is written, 1 read.
struct kernel_elements {
  /// Those of a tensor, and one more for the parts of complex numbers.
  static constexpr unsigned most_dimensions = 9;

  std::byte* first[2];
  std::uint64_t count;
  /// Both are contiguous, and after `head` elements aligned so that packs can be loaded.
  bool is_packed;
  std::uint32_t head;
  std::uint32_t dimensions;  // 1 or more
  std::uint64_t sizes[most_dimensions];
  std::int64_t steps[2][most_dimensions];  // in bytes
};

/// As element_op.
enum class kernel_op : std::uint32_t { sum, prod, min, max };

struct fill_arguments {
  kernel_elements elements;
  std::uint32_t element_bytes;  // 1, 2, 4, 8 or 16
  alignas(16) std::byte element[16];
};

struct copy_arguments {
  kernel_elements elements;
  std::uint32_t element_bytes;
};

struct convert_arguments {
  kernel_elements elements;
  std::uint8_t to;  // a dtype, as `from`; only looked at where the kernel takes all
  std::uint8_t from;
};

struct accumulate_arguments {
  kernel_elements elements;
  kernel_op op;
};

/// Of scale, axpy and divide.
struct factor_arguments {
  kernel_elements elements;
  double factor;
};

struct reduce_arguments {
  kernel_elements elements;  // operand 1
  kernel_op op;
  std::uint32_t lanes;
  std::byte* results;  // one for each lane
};

/// As cuda_rule_kind.
enum class kernel_rule : std::uint32_t {
  assign,
  plain,
  momentum,
  nesterov,
  adam,
  adagrad,
  rmsprop,
  rmsprop_momentum,
  adadelta,
  adamax
};

struct rule_arguments {
  static constexpr unsigned most_gradients = 16;

  kernel_rule rule;
  std::uint32_t state_count;
  double rate;
  double momentum;
  double taken;
  double decay;
  double squared;
  double root;
  double epsilon;
  double weight_decay;
  double shrink;
  std::uint64_t count;
  bool is_packed;  // all arrays are aligned so that packs can be loaded
  std::uint32_t gradient_count;
  const std::byte* gradients[most_gradients];
  double weights[most_gradients];
  const std::byte* value;
  std::byte* new_value;
  const std::byte* old_states[2];
  std::byte* new_states[2];
};

}  // namespace muster::detail
