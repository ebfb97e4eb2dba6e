// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a data refuses. All that requires throws errc::invalid_argument, whose text names the data.
//
// Thread safety: pure functions; safe, while nobody changes the data.

#include <cstddef>
#include <string_view>

#include <muster/parallel/data.hpp>

namespace muster::detail {

/// Throws.
[[noreturn]] void refuse(std::string_view name, std::string_view why);

/// From 1 to 2.
void require_oversize(std::string_view name, double oversize);

/// What it is to hold for life. Throws where the options do not say so, or contradict themselves.
[[nodiscard]] muster::dtype type_of(const data_options& options);
/// Requires: type_of did not throw.
[[nodiscard]] std::size_t dimensions_of(const data_options& options);

/// As many as it has.
void require_dimensions(const data& whose, const tensor_shape& shape);

/// That a value of this dtype may be stored.
void require_castable(const data& whose, muster::dtype type, bool force_cast);

/// That it has such rows from `first` on.
void require_rows(const data& whose, std::size_t first, const tensor& rows);

/// How many elements of its dtype this shape has. Throws where they do not fit into the addresses there are.
[[nodiscard]] std::size_t count_of(const data& whose, const tensor_shape& shape);

}  // namespace muster::detail
