// SPDX-License-Identifier: BSL-1.0
#include "stages.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace frames {

namespace {

// Writes the picture, turned by `shift` columns.
void draw(const muster::tensor& picture, std::size_t shift, const muster::tensor& into) {
  const auto row_bytes = picture.shape()[1] * 3;
  const auto turned = shift % picture.shape()[1] * 3;
  for (std::size_t row = 0; row < picture.rows(); ++row) {
    const auto* const from = picture.data() + row * row_bytes;
    auto* const to = into.data() + row * row_bytes;
    std::memcpy(to, from + turned, row_bytes - turned);
    std::memcpy(to + row_bytes - turned, from, turned);
  }
}

std::vector<int> grays_of(const std::uint8_t* row, std::size_t columns) {
  std::vector<int> grays(columns);
  for (std::size_t column = 0; column < columns; ++column) {
    grays[column] = (row[3 * column] + 2 * row[3 * column + 1] + row[3 * column + 2]) / 4;
  }
  return grays;
}

// How strongly the brightness changes around a pixel (Sobel), from the three rows around it.
int slope_at(const std::array<std::vector<int>, 3>& rows, std::size_t column) {
  const auto left = column == 0 ? column : column - 1;
  const auto right = std::min(column + 1, rows[0].size() - 1);
  const auto across =
      rows[0][right] + 2 * rows[1][right] + rows[2][right] - rows[0][left] - 2 * rows[1][left] - rows[2][left];
  const auto down =
      rows[2][left] + 2 * rows[2][column] + rows[2][right] - rows[0][left] - 2 * rows[0][column] - rows[0][right];
  return std::abs(across) + std::abs(down);
}

// Makes a drawing of it: colours fade, edges are inked. In place: what a row needs of its neighbours is kept aside.
void sketch(const muster::tensor& pixels) {
  const auto count = pixels.rows();
  const auto columns = pixels.shape()[1];
  const auto row_of = [&](std::size_t row) {
    return pixels.data<std::uint8_t>() + std::min(row, count - 1) * columns * 3;
  };
  std::array<std::vector<int>, 3> near = {grays_of(row_of(0), columns), grays_of(row_of(0), columns),
                                          grays_of(row_of(1), columns)};
  for (std::size_t row = 0; row < count; ++row) {
    auto* const values = row_of(row);
    for (std::size_t column = 0; column < columns; ++column) {
      const auto ink = std::min(slope_at(near, column), 255);
      for (std::size_t channel = 0; channel < 3; ++channel) {
        auto& value = values[3 * column + channel];
        value = static_cast<std::uint8_t>((128 + value / 2) * (255 - ink) / 255);
      }
    }
    near[0] = std::move(near[1]);
    near[1] = std::move(near[2]);
    near[2] = grays_of(row_of(row + 2), columns);
  }
}

void sign(frame& written) {
  written.checksum = checksum_of(written.pixels);
  written.writer = ::getpid();
}

}  // namespace

std::uint64_t checksum_of(const muster::tensor& pixels) {
  std::uint64_t sum = 0xcbf29ce484222325U;  // FNV-1a
  for (const auto value : pixels.span<std::uint8_t>()) sum = (sum ^ value) * 0x100000001b3U;
  return sum;
}

void draw_frames(const muster::tensor& picture, std::size_t count, const frame_queue& empty, const frame_queue& drawn) {
  for (std::size_t number = 0; number < count; ++number) {
    auto next = empty.pop();
    if (!next) throw std::runtime_error("the ring was closed after " + std::to_string(number) + " frames");
    draw(picture, number * 4, next->pixels);
    next->number = number;
    sign(*next);
    drawn.push(*next);
  }
  drawn.close();
}

std::size_t filter_frames(const frame_queue& drawn, const frame_queue& filtered) {
  std::size_t count = 0;
  while (auto mine = drawn.lease()) {
    auto& work = **mine;
    sketch(work.pixels);
    sign(work);
    filtered.push(work);
    mine->ack();
    ++count;
  }
  return count;
}

}  // namespace frames
