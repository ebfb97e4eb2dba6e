// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <muster/parallel/row_selection.hpp>

namespace muster {

/// The rows from 0 to before `rows`, each once, in a random order, as selections of `batch` rows each; the last is
/// smaller where they do not come out even. For an epoch of a training:
///
///     for (const auto& batch : muster::batches(images.rows(), 256, epoch)) loss = step.with({.batch = batch})(images);
///
/// The same arguments give the same order, on every machine; another `seed` gives another one. None for no rows.
/// Throws errc::invalid_argument for batches of no rows.
///
/// Thread safety: safe.
/// Cost: 16 bytes for each row while it is made, 8 after that.
/// Source: the shuffle of Fisher and Yates, with numbers of std::mt19937_64, scaled by multiplication (Lemire, "Fast
/// Random Integer Generation in an Interval", 2019, without its rejection: the bias is rows / 2^64).
[[nodiscard]] std::vector<row_selection> batches(std::size_t rows, std::size_t batch, std::uint64_t seed);

}  // namespace muster
