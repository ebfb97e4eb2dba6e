// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tensors, and what is computed with them.

#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/safetensors.hpp>
#include <muster/device/sparse_rows.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/device/tensor_print.hpp>
