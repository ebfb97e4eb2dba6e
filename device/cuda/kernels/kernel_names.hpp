// SPDX-License-Identifier: BSL-1.0
#pragma once

// All kernels: X(name, function that does it, what it is given). Families are in the order of dtypes.

#define MUSTER_CUDA_KERNELS_OF_ALL_TYPES(X, name, arguments) \
  X(name##_bool, name<bool>, arguments)                      \
  X(name##_i8, name<std::int8_t>, arguments)                 \
  X(name##_i16, name<std::int16_t>, arguments)               \
  X(name##_i32, name<std::int32_t>, arguments)               \
  X(name##_i64, name<std::int64_t>, arguments)               \
  X(name##_u8, name<std::uint8_t>, arguments)                \
  X(name##_u16, name<std::uint16_t>, arguments)              \
  X(name##_u32, name<std::uint32_t>, arguments)              \
  X(name##_u64, name<std::uint64_t>, arguments)              \
  MUSTER_CUDA_KERNELS_OF_FRACTIONS(X, name, arguments)       \
  X(name##_c64, name<complex_float>, arguments)              \
  X(name##_c128, name<complex_double>, arguments)

#define MUSTER_CUDA_KERNELS_OF_FRACTIONS(X, name, arguments) \
  X(name##_f16, name<half>, arguments)                       \
  X(name##_bf16, name<brain_half>, arguments)                \
  X(name##_f32, name<float>, arguments)                      \
  X(name##_f64, name<double>, arguments)

#define MUSTER_CUDA_KERNELS(X)                                                  \
  X(fill, fill_elements, fill_arguments)                                        \
  X(copy, copy_elements, copy_arguments)                                        \
  X(convert, convert_any, convert_arguments)                                    \
  X(convert_f16_f32, (convert_elements<half, float>), convert_arguments)        \
  X(convert_bf16_f32, (convert_elements<brain_half, float>), convert_arguments) \
  X(convert_f32_f16, (convert_elements<float, half>), convert_arguments)        \
  X(convert_f32_bf16, (convert_elements<float, brain_half>), convert_arguments) \
  X(convert_f32_f64, (convert_elements<float, double>), convert_arguments)      \
  X(convert_f64_f32, (convert_elements<double, float>), convert_arguments)      \
  X(convert_f32_u8, (convert_elements<float, std::uint8_t>), convert_arguments) \
  MUSTER_CUDA_KERNELS_OF_ALL_TYPES(X, accumulate, accumulate_arguments)         \
  MUSTER_CUDA_KERNELS_OF_FRACTIONS(X, scale, factor_arguments)                  \
  MUSTER_CUDA_KERNELS_OF_FRACTIONS(X, axpy, factor_arguments)                   \
  MUSTER_CUDA_KERNELS_OF_FRACTIONS(X, divide, factor_arguments)                 \
  MUSTER_CUDA_KERNELS_OF_ALL_TYPES(X, reduce, reduce_arguments)                 \
  MUSTER_CUDA_KERNELS_OF_FRACTIONS(X, apply_rule, rule_arguments)
