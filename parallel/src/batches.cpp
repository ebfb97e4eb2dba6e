// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/batches.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

__extension__ using wide = unsigned __int128;

// What std::shuffle makes of the same numbers differs from one library to the next.
void shuffle(std::span<std::int64_t> rows, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (auto left = rows.size(); left > 1; --left) {
    const auto chosen = static_cast<std::size_t>((wide{random()} * left) >> 64U);
    std::swap(rows[chosen], rows[left - 1]);
  }
}

}  // namespace

std::vector<row_selection> batches(std::size_t rows, std::size_t batch, std::uint64_t seed) {
  if (batch == 0)
    throw error(errc::invalid_argument, text("batches of 0 rows of ", rows, " were asked for: 1 row at least"));
  std::vector<std::int64_t> order(rows);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  shuffle(order, seed);
  std::vector<row_selection> made;
  made.reserve((rows / batch) + 1);
  for (auto left = std::span<const std::int64_t>(order); !left.empty();) {
    const auto size = std::min(batch, left.size());
    made.emplace_back(left.first(size));
    left = left.subspan(size);
  }
  return made;
}

}  // namespace muster
