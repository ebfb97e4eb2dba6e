// SPDX-License-Identifier: BSL-1.0
// A pointer, view or reference in the type that INSIDE names.
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <muster/pool/pool.hpp>

namespace kinds {

using vector = std::vector<int*>;
using tuple = std::tuple<int, int*>;
using pair = std::pair<int*, int>;
using array = std::array<int*, 3>;
using optional = std::optional<int*>;
using unique_ptr = std::unique_ptr<int*>;
using tuple_of_reference = std::tuple<int, int&>;
using pair_of_reference = std::pair<const int&, int>;
using vector_of_tuples = std::vector<std::tuple<int, std::optional<std::string_view>>>;

}  // namespace kinds

int call(const muster::pool& pool, const kinds::INSIDE& given) {
  return pool.apply([](const kinds::INSIDE&) { return 1; }, given);
}
