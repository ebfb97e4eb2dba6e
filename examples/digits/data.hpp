// SPDX-License-Identifier: BSL-1.0
#pragma once

// Handwritten digits: the "Optical Recognition of Handwritten Digits" set of the UCI repository, in the form that
// scikit-learn has it: a line per image, 64 pixels from 0 to 16 and the digit, with commas between.

#include <cstddef>
#include <cstdint>
#include <string>

#include <muster/device/tensor.hpp>

namespace digits {

constexpr std::size_t side = 8;
constexpr std::size_t pixels = side * side;
constexpr std::size_t kinds = 10;

/// Images and what they show, row by row, in shared memory.
struct samples {
  muster::tensor images;  ///< f32, (n, 64), from 0 to 1
  muster::tensor labels;  ///< i32, (n)

  [[nodiscard]] std::size_t count() const { return labels.rows(); }
};

/// Throws std::runtime_error, with the file and the line, and what would be right there. What gzip has packed is
/// unpacked by that program.
[[nodiscard]] samples read_samples(const std::string& file);

struct divided_samples {
  samples train;
  samples test;
};

/// 1500 of 1797 images to learn from, and the others to test with; of any other number the same share. Which ones: by
/// chance, the same for the same seed. Requires: samples.count() >= 2.
[[nodiscard]] divided_samples divide(const samples& all, std::uint64_t seed);

}  // namespace digits
