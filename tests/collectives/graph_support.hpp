// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/graph.hpp>

namespace muster::test {

/// The steps of a rank, as they are printed.
inline std::vector<std::string> lines_of(const graph_schedule& schedule, int rank) {
  std::vector<std::string> lines;
  for (const auto& step : schedule.of(rank)) lines.push_back(text(step));
  return lines;
}

inline std::vector<std::string> lines_of(const graph& what, int rank) { return lines_of(what.schedule(), rank); }

/// Nodes that are added in any order: names stand for those that are not there yet.
class shuffled_graph {
public:
  void add(std::function<void(graph&)> node) { nodes_.push_back(std::move(node)); }

  [[nodiscard]] graph in_order() const {
    graph made;
    for (const auto& each : nodes_) each(made);
    return made;
  }
  template <class Random>
  [[nodiscard]] graph in_disorder(Random& random) {
    std::shuffle(nodes_.begin(), nodes_.end(), random);
    return in_order();
  }

private:
  std::vector<std::function<void(graph&)>> nodes_;
};

/// Functions that nobody calls.
inline constexpr auto nothing = [](const auto&...) {};

inline const graph_form number{dtype::f32, {}};

/// Expects that `call` throws muster::error of that kind, and that the text has all of `parts`.
template <class Call, class... Parts>
void expect_error(errc kind, const Call& call, const Parts&... parts) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& found) {
    EXPECT_EQ(found.code(), make_error_code(kind)) << found.what();
    for (const std::string part : std::initializer_list<const char*>{parts...}) {
      EXPECT_THAT(found.what(), testing::HasSubstr(part));
    }
  }
}

template <class Call, class... Parts>
void expect_refused(const Call& call, const Parts&... parts) {
  expect_error(errc::invalid_argument, call, parts...);
}

}  // namespace muster::test
