// SPDX-License-Identifier: BSL-1.0
#include "data_check.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/convert.hpp>

namespace muster::detail {

void refuse(std::string_view name, std::string_view why) {
  const auto whom = name.empty() ? std::string("data") : text("data '", name, "'");
  throw error(errc::invalid_argument, text(whom, ": ", why));
}

void require_oversize(std::string_view name, double oversize) {
  if (1 <= oversize && oversize <= 2) return;  // not so for NaN
  refuse(name, text("an oversize of ", oversize, " was given: it must be from 1 to 2"));
}

// ---- what a data is made of

namespace {

bool has_dimensions(const data_options& options) { return options.value || options.dimensions || options.shape; }

void require_complete(const data_options& options) {
  const bool has_type = options.type || options.value;
  if (has_type && has_dimensions(options)) return;
  constexpr auto of_type = "a dtype, by .type or .value";
  constexpr auto of_dimensions = "a number of dimensions, by .dimensions, .shape or .value";
  const auto missing = has_type                  ? std::string(of_dimensions)
                       : has_dimensions(options) ? std::string(of_type)
                                                 : text(of_type, ", and ", of_dimensions);
  refuse(options.name, text("these are fixed for life, so give ", missing));
}

void require_no_contradiction(const data_options& options) {
  if (options.value || !options.shape || !options.dimensions) return;
  if (options.shape->size() == *options.dimensions) return;
  refuse(options.name, text(*options.dimensions, " dimensions and shape ", *options.shape,
                            " were given, which do not agree: leave out one of them"));
}

}  // namespace

muster::dtype type_of(const data_options& options) {
  require_complete(options);
  require_no_contradiction(options);
  return options.type ? *options.type : options.value->dtype();
}

std::size_t dimensions_of(const data_options& options) {
  if (options.value) return options.value->dimensions();
  return options.shape ? options.shape->size() : *options.dimensions;
}

// ---- what fits

void require_dimensions(const data& whose, const tensor_shape& shape) {
  if (shape.size() == whose.dimensions()) return;
  refuse(whose.name(), text("shape ", shape, " of ", shape.size(), " dimensions was given, but it has ",
                            whose.dimensions(), " for life: reshape the value, or make another data"));
}

void require_castable(const data& whose, muster::dtype type, bool force_cast) {
  if (force_cast || is_lossless(type, whose.dtype())) return;
  refuse(whose.name(), text("a value of dtype ", type, " was given, but it is of dtype ", whose.dtype(),
                            ", which does not have all numbers of that: convert the value, or pass force_cast"));
}

void require_rows(const data& whose, std::size_t first, const tensor& rows) {
  const bool alike = whose.dimensions() != 0 && rows.dimensions() == whose.dimensions() &&
                     rows.shape().without_first() == whose.shape().without_first();
  if (alike && first <= whose.rows() && rows.rows() <= whose.rows() - first) return;
  refuse(whose.name(),
         text("rows of shape ", rows.shape(), " were to be set from row ", first, " on, but its shape is ",
              whose.shape(), ": only the first size may differ, and the rows must be there, so call set_length first"));
}

std::size_t count_of(const data& whose, const tensor_shape& shape) {
  std::size_t count = dtype_size(whose.dtype());
  // As if sizes of 0 were 1: strides are made of the others.
  for (const auto size : shape) {
    if (__builtin_mul_overflow(count, std::max<std::size_t>(size, 1), &count) || count > PTRDIFF_MAX) {
      refuse(whose.name(), text("shape ", shape, " was given: no size may be negative, and all elements must fit into ",
                                PTRDIFF_MAX, " bytes"));
    }
  }
  return std::ranges::find(shape, std::size_t{0}) != shape.end() ? 0 : count / dtype_size(whose.dtype());
}

}  // namespace muster::detail
