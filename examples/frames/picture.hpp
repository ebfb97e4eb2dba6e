// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <filesystem>

#include <muster/device/tensor.hpp>

namespace frames {

// Pictures are tensors of u8 and shape (rows, columns, 3): red, green, blue.

/// Reads a binary PPM or PGM file (P6, P5; 8 bits). Throws std::runtime_error that names the file and what is wrong.
[[nodiscard]] muster::tensor read_picture(const std::filesystem::path& path);

/// Writes a binary PPM file. Throws std::runtime_error that names the file and the reason.
void write_picture(const std::filesystem::path& path, const muster::tensor& picture);

/// A picture for those who have none: waves and rings.
[[nodiscard]] muster::tensor render_picture(std::size_t rows, std::size_t columns);

}  // namespace frames
