// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>
#include <type_traits>
#include <variant>

#include <muster/serialize/result.hpp>

namespace muster::detail {

/// What a stream over results of type R yields; void becomes monostate.
template <class R>
using streamed = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

/// Where a stream has its results from.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class R>
class stream_source {
public:
  virtual ~stream_source() = default;
  /// The next result; nothing at the end. Waits for it. Throws what the input throws.
  virtual std::optional<result<streamed<R>>> next() = 0;
};

}  // namespace muster::detail
