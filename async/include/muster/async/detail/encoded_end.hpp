// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <type_traits>

#include <muster/async/detail/outcome.hpp>
#include <muster/serialize/detail/codec.hpp>

namespace muster::detail {

/// How something ended in another process, still encoded: bytes, or an error.
///
/// Thread safety: a value. Lifetime: borrows all.
struct encoded_end {
  std::span<const std::byte> bytes;
  attachment_source* attachments = nullptr;
  const error_info* failure = nullptr;  ///< nullptr: it has a value
};

/// Gets one, where that lies.
///
/// Thread safety: as the implementation.
class end_reader {
public:
  virtual void read(const encoded_end& end) const noexcept = 0;

protected:
  ~end_reader() = default;
};

/// Decodes it, in the thread that wants the value. What is thrown on the way is how it ended. Values that are made in
/// this process need not be transportable: those of such a type never come encoded.
template <class R>
[[nodiscard]] outcome<R> decode_end(const encoded_end& end) noexcept {
  try {
    if (end.failure != nullptr) return outcome<R>::of_error(error_info::copy_of(*end.failure));
    if constexpr (std::is_void_v<R>) {
      return outcome<R>::of_value();
    } else if constexpr (!sendable_value<R>) {
      return outcome<R>::of_error(error_info(errc::not_serializable, "values of this type do not come from tasks"));
    } else {
      return outcome<R>::of_made([&] { return codec<R>::decode_value(end.bytes, end.attachments); });
    }
  } catch (const error& failure) {
    return outcome<R>::of_error(
        error_info::described(errc::not_serializable, [&] { return std::string(failure.what()); }));
  } catch (...) {  // of a serialize function, or for want of memory
    return outcome<R>::of_exception(std::current_exception());
  }
}

}  // namespace muster::detail
