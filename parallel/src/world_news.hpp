// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a rank is told before a call, because it does not know it yet.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <muster/parallel/detail/function_spec.hpp>
#include <muster/parallel/detail/rank_variable.hpp>
#include <muster/serialize/function_token.hpp>

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

}  // namespace muster::detail
