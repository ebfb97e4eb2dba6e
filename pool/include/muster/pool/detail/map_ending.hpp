// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/async/detail/outcome.hpp>
#include <muster/async/detail/typed_source.hpp>
#include <muster/pool/detail/batch_access.hpp>
#include <muster/pool/detail/batch_reader.hpp>

namespace muster::detail {

/// What map gives for results of type R: nothing for void.
template <class R>
using mapped = std::conditional_t<std::is_void_v<R>, void, std::vector<R>>;

/// The values of a run without failures.
template <class R>
[[nodiscard]] mapped<R> values_of(const batch_results& run) {
  if constexpr (array_element<R> && !std::is_same_v<R, bool>) {
    const auto bytes = run.array.first(run.count * sizeof(R));
    const auto* const first = reinterpret_cast<const R*>(bytes.data());
    return std::vector<R>(first, first + run.count);
  } else if constexpr (!std::is_void_v<R>) {
    std::vector<R> values;
    values.reserve(run.count);
    for (batch_reader<R> reader(run); !reader.at_end();) values.push_back(std::move(reader.next()).value());
    return values;
  }
}

template <class R>
[[nodiscard]] std::vector<result<R>> each_result_of(const batch_results& run) {
  std::vector<result<R>> results;
  results.reserve(run.count);
  for (batch_reader<R> reader(run); !reader.at_end();) {
    auto next = reader.next();
    if constexpr (std::is_void_v<R>) {
      results.push_back(next ? result<R>() : result<R>(next.error()));
    } else {
      results.push_back(std::move(next));
    }
  }
  return results;
}

/// How a finished run ended as the outcome of a map: all values, or the error of the first element that failed.
template <class R>
struct all_or_error {
  using type = mapped<R>;

  static outcome<type> of(const batch_results& run) {
    if (!run.failures.empty()) return outcome<type>::of_error(run.failures.front().error);
    return outcome<type>::of_call([&] { return values_of<R>(run); });
  }
};

/// … as the outcome of a map that collects errors.
template <class R>
struct each_result {
  using type = std::vector<result<R>>;

  static outcome<type> of(const batch_results& run) {
    return outcome<type>::of_call([&] { return each_result_of<R>(run); });
  }
};

template <class Ending>
[[nodiscard]] outcome<typename Ending::type> take_map(const held_source& which,
                                                      const typed_functions<typename Ending::type>& /*by*/) {
  return Ending::of(map_results(which));
}

template <class Ending>
inline constexpr typed_functions<typename Ending::type> map_source_of{{&object_functions}, &take_map<Ending>};

}  // namespace muster::detail
