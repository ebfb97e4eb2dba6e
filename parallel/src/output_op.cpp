// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/output_op.hpp>

#include <array>

namespace muster {

std::string_view output_op_name(output_op op) noexcept {
  constexpr std::array<std::string_view, 9> names = {"avg",    "sum",  "prod",          "min",       "max",
                                                     "gather", "none", "mean_of_ranks", "count_true"};
  const auto index = static_cast<std::size_t>(op);
  return index < names.size() ? names[index] : "unknown";
}

}  // namespace muster
