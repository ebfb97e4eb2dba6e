// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include <muster/pool/detail/batch.hpp>
#include <muster/pool/detail/batch_access.hpp>
#include <muster/pool/detail/chunk_task.hpp>
#include <muster/pool/detail/stream_source.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/result.hpp>

namespace muster::detail {

/// Goes over the results of a finished batch in order.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe. Lifetime: borrows the batch.
template <class R>
class batch_reader {
public:
  explicit batch_reader(const batch_results& of) noexcept : run_(of) {}

  [[nodiscard]] bool at_end() const noexcept { return index_ == run_.count; }

  result<streamed<R>> next() {
    const auto index = index_++;
    const auto& failures = run_.failures;
    while (failure_ < failures.size() && index >= failures[failure_].first + failures[failure_].count) ++failure_;
    if (failure_ < failures.size() && index >= failures[failure_].first) return failures[failure_].error;
    return value_at(index);
  }

private:
  result<streamed<R>> value_at(std::size_t index) {
    if constexpr (std::is_void_v<R>) {
      return std::monostate{};
    } else if constexpr (array_element<R>) {
      return codec<R>::decode_value(run_.array.subspan(index * sizeof(R), sizeof(R)));
    } else {
      const auto& pieces = run_.pieces;
      while (index >= pieces[piece_].first + pieces[piece_].count) {
        ++piece_;
        offset_ = 0;
      }
      const auto& piece = pieces[piece_];
      const std::span<const std::byte> results = piece.results.bytes();
      const auto encoded = results.subspan(offset_ < results.size() ? offset_ : results.size());
      std::uint64_t bytes = 0;
      if (encoded.size() >= sizeof bytes) std::memcpy(&bytes, encoded.data(), sizeof bytes);
      if (encoded.size() < result_prefix_bytes || bytes > encoded.size() - result_prefix_bytes) {
        return error_info(errc::corrupted, "the worker's results do not lie in their block");
      }
      offset_ += result_prefix_bytes + round_up(bytes, frame_alignment);
      try {
        return codec<R>::decode_value(encoded.subspan(result_prefix_bytes, bytes));
      } catch (const error& failure) {
        return of_element(result<R>(error_info(errc::not_serializable, failure.what())), run_.first_element + index);
      } catch (...) {  // of a serialize function
        return of_element(result<R>(capture_current_exception()), run_.first_element + index);
      }
    }
  }

  const batch_results run_;
  std::size_t index_ = 0;
  std::size_t failure_ = 0;
  std::size_t piece_ = 0;
  std::size_t offset_ = 0;
};

}  // namespace muster::detail
