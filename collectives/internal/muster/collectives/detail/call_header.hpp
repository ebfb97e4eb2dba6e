// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <muster/collectives/reduction.hpp>
#include <muster/device/tensor.hpp>

namespace muster::detail {

/// Stable values: they cross processes.
enum class collective : std::uint8_t {
  none = 0,
  barrier = 1,
  broadcast = 2,
  reduce = 3,
  all_reduce = 4,
  gather = 5,
  all_gather = 6,
  scatter = 7,
  reduce_scatter = 8,
  all_to_all = 9,
  split = 10,
  broadcast_bytes = 11,
  refused = 12,               ///< the rank could not make its call; the payload says why
  all_reduce_of_several = 13  ///< tensors in a row, which are described by the fingerprint
};

[[nodiscard]] const char* name_of(collective kind) noexcept;

/// What a rank calls, as the others see it. Ranks whose calls do not fit together all find that out from the same
/// headers, and all refuse.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct call_header {
  static constexpr std::uint32_t no_root = 0xffff;
  // In `flags`.
  static constexpr std::uint8_t in_place = 1;  ///< its contribution is in a block that the payload names
  /// Its tensors are on a device, and it would do it directly: nothing has been written into its payload but extras.
  static constexpr std::uint8_t on_device = 2;

  collective kind = collective::none;
  reduction_op op = reduction_op::sum;
  muster::dtype type = muster::dtype::u8;
  std::uint8_t flags = 0;
  std::uint32_t root = no_root;
  std::uint64_t count = 0;        ///< elements of its contribution; for `refused` and bytes: bytes
  std::uint64_t fingerprint = 0;  ///< of everything else that must be equal: shape, or shapes, function, lists of rows

  [[nodiscard]] std::uint64_t pack_what() const noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} | std::uint64_t{static_cast<std::uint8_t>(op)} << 8U |
           std::uint64_t{static_cast<std::uint8_t>(type)} << 16U | std::uint64_t{flags} << 24U |
           std::uint64_t{root} << 32U;
  }
  /// Any bits give some header; what it says is still to be compared.
  void unpack_what(std::uint64_t what) noexcept {
    kind = static_cast<collective>(what & 0xffU);
    op = static_cast<reduction_op>(what >> 8U & 0xffU);
    type = static_cast<muster::dtype>(what >> 16U & 0xffU);
    flags = static_cast<std::uint8_t>(what >> 24U & 0xffU);
    root = static_cast<std::uint32_t>(what >> 32U);
  }

  [[nodiscard]] bool is_in_place() const noexcept { return (flags & in_place) != 0; }
  [[nodiscard]] bool is_on_device() const noexcept { return (flags & on_device) != 0; }

  /// Whether two ranks may make these calls together: all but the flags is equal, and the counts where `counts_differ`
  /// is false.
  [[nodiscard]] bool fits(const call_header& other, bool counts_differ) const noexcept {
    return kind == other.kind && op == other.op && type == other.type && root == other.root &&
           fingerprint == other.fingerprint && (counts_differ || count == other.count);
  }

  /// "all_reduce(max) of 12 elements f32", "all_reduce(max) of 12 elements f32 in several tensors".
  [[nodiscard]] std::string describe() const;
};

/// Mixes numbers into one in which every bit depends on all of theirs (splitmix64).
class fingerprint {
public:
  fingerprint& add(std::uint64_t number) noexcept {
    state_ += number + 0x9e3779b97f4a7c15U;
    state_ = (state_ ^ (state_ >> 30U)) * 0xbf58476d1ce4e5b9U;
    state_ = (state_ ^ (state_ >> 27U)) * 0x94d049bb133111ebU;
    state_ ^= state_ >> 31U;
    return *this;
  }
  fingerprint& add(const tensor_shape& shape, std::size_t from = 0) noexcept {
    add(shape.size());
    for (std::size_t each = from; each < shape.size(); ++each) add(shape[each]);
    return *this;
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

private:
  std::uint64_t state_ = 0;
};

}  // namespace muster::detail
