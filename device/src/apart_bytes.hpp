// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace muster::detail {

/// What a pass reads that writes `to` as it goes: `from`, or a copy of it where they overlap in part.
///
/// Thread safety: an object belongs to one thread.
/// Lifetime: borrows `from`.
class apart_bytes {
public:
  /// `may_be_same`: each element is read before its counterpart is written. Throws std::bad_alloc.
  apart_bytes(std::span<const std::byte> to, std::span<const std::byte> from, bool may_be_same) : bytes_(from) {
    const std::less<> before;
    const bool overlap = before(to.data(), from.data() + from.size()) && before(from.data(), to.data() + to.size());
    if (!overlap || (may_be_same && to.data() == from.data())) return;
    copy_.assign(from.begin(), from.end());
    bytes_ = copy_;
  }
  apart_bytes(const apart_bytes&) = delete;
  apart_bytes& operator=(const apart_bytes&) = delete;

  [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data(); }

private:
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace muster::detail
