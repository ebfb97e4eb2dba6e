// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <muster/async/detail/encoded_end.hpp>
#include <muster/async/detail/future_handle.hpp>
#include <muster/async/detail/future_source.hpp>
#include <muster/async/detail/outcome.hpp>

namespace muster::detail {

/// A table of functions, and how its sources give a value of type R: once, when it is done.
template <class R>
struct typed_functions : source_table {
  outcome<R> (*take)(const held_source& which, const typed_functions& by);
};

template <class R>
[[nodiscard]] outcome<R> take_of_object(const held_source& which, const typed_functions<R>& /*by*/) {
  return static_cast<future_source<R>&>(*static_cast<untyped_source*>(which.what.get())).take();
}

/// Decodes into an outcome.
///
/// Thread safety: as a value.
template <class R>
class outcome_reader final : public end_reader {
public:
  explicit outcome_reader(std::optional<outcome<R>>& into) noexcept : into_(into) {}
  void read(const encoded_end& end) const noexcept override { into_.emplace(decode_end<R>(end)); }

private:
  std::optional<outcome<R>>& into_;
};

template <class R>
[[nodiscard]] outcome<R> take_encoded(const held_source& which, const typed_functions<R>& by) {
  std::optional<outcome<R>> how;
  by.functions->read(which, outcome_reader<R>(how));
  return std::move(*how);
}

template <class R>
inline constexpr typed_functions<R> object_source{{&object_functions}, &take_of_object<R>};

/// A handle of such a source.
template <class R>
[[nodiscard]] future_handle handle_of(std::shared_ptr<future_home> home, std::shared_ptr<future_source<R>> source) {
  std::shared_ptr<untyped_source> untyped = std::move(source);
  return {held_source{.home = std::move(home), .what = std::move(untyped)}, object_source<R>};
}

/// How it ended; also what the source throws, for want of memory, is how. Uses the future up.
template <class R>
[[nodiscard]] outcome<R> take_outcome(future_handle from) noexcept {
  const auto& table = static_cast<const typed_functions<R>&>(from.table());
  const auto which = from.release();
  try {
    return table.take(which, table);
  } catch (...) {
    return outcome<R>::of_exception(std::current_exception());
  }
}

}  // namespace muster::detail
