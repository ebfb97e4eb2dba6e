// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a rank is told before a call, because it does not know it yet.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/parallel/detail/function_spec.hpp>
#include <muster/parallel/detail/rank_variable.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

struct function_news {
  std::uint32_t number = 0;
  bool is_gone = false;
  function_spec spec{};
  function_token factory{};       ///< a rank_function_factory
  std::vector<std::byte> sent{};  ///< for it

  template <class Archive>
  void serialize(Archive& archive) {
    archive(number, is_gone);
    if (!is_gone) archive(spec, factory, sent);
  }
};

struct variable_news {
  std::uint32_t number = 0;
  bool is_gone = false;
  rank_variable what{};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(number, is_gone);
    if (!is_gone) archive(what);
  }
};

/// What a rank does with its copies of a variable on its device, between calls.
struct residence_job {
  static constexpr std::uint32_t all_ranks = ~std::uint32_t{0};

  std::uint32_t variable = 0;
  std::uint32_t rank = all_ranks;  ///< whose
  std::uint32_t copies =
      0;  ///< to be made, of the shape that the live copy on the host has; 0: the live one comes there
  named_copy live{};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(variable, rank, copies, live.bits);
  }
};

/// A rank's copies of one variable on its device.
using resident_copies = std::array<tensor, 2>;

}  // namespace muster::detail
