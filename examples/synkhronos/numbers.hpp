// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the examples have in common: matrices to compute with, and a comparison with what one thread gives.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include <muster/device/tensor.hpp>

namespace example {

using muster::tensor;

/// f32 numbers from 0 to 1, in shared memory; the same for the same seed.
[[nodiscard]] tensor noise(const muster::tensor_shape& shape, std::uint32_t seed);

/// x (n, k) · y (k, m), f32.
[[nodiscard]] tensor product(const tensor& x, const tensor& y);

/// The sum of the elements, f32.
[[nodiscard]] float total(const tensor& x);

/// Prints what holds. Where it does not, says so, and ends the program with an error.
void require(bool holds, std::string_view what);
/// Prints the name and both values, and ends the program with an error unless they are equal to five digits.
void compare(std::string_view name, float found, float serial);
/// Likewise, element by element; prints the first of each.
void compare(std::string_view name, const tensor& found, const tensor& serial);

/// The number of ranks: the program's first argument, 2 if there is none. Ends the program, with an error, for what is
/// no number from 1 to `most`, which is as many as a world takes.
[[nodiscard]] unsigned ranks_of(int argc, char** argv, unsigned most = 256);

/// Calls `demo`. What main is to return: when it throws, an error, and the reason is printed.
[[nodiscard]] int run(const std::function<void()>& demo);

}  // namespace example
