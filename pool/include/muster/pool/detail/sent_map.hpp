// SPDX-License-Identifier: BSL-1.0
#pragma once

// What workers are sent of a map or stream: the callable once, as the job of all chunks, and the input in batches.

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <muster/base/detail/range_concepts.hpp>
#include <muster/pool/detail/batch.hpp>
#include <muster/pool/detail/batch_access.hpp>
#include <muster/pool/detail/chunk_task.hpp>
#include <muster/pool/detail/core_access.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/owned_value.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/serialize/callable.hpp>

namespace muster::detail {

/// A job with that state: what the callable sends of itself, and its bound values.
template <class... State>
std::shared_ptr<map_job> encode_job(pool_core& core, const job_terms& terms, const State&... state) {
  using frame = codec<State...>;
  const bool attaches = terms.options.transfer != transfer::copy;
  const auto needed = frame::measure(attaches, state...);
  auto job = make_map_job(core, terms, needed.bytes);
  attachment_lender attachments(memory_of(core), attachments_of(*job), needed.attachments);
  frame::encode_with(state_of(*job).first(needed.bytes), attaches ? &attachments : nullptr, state...);
  return job;
}

/// The callable of a map, encoded once for all chunks.
template <bool Unpack, class F, class T>
std::shared_ptr<map_job> make_job(pool_core& core, const F& callable, bool fail_fast, const task_options& options) {
  using sent = sent_callable<F>;
  const job_terms terms{.code = functions_of(core).encode(&chunk_code<Unpack, F, T>::run),
                        .callable = typeid(typename sent::callable),
                        .fail_fast = fail_fast,
                        .options = options};
  return sent::send(callable, functions_of(core),
                    [&](const auto&... state) { return encode_job(core, terms, state...); });
}

/// The whole input of a map in one batch. Ranges that make their elements on the fly are gone over once.
template <class T, class R, class Xs>
packed_batch batch_of_range(arena& memory, transfer how, Xs&& xs) {
  using reference = std::ranges::range_reference_t<Xs>;
  if constexpr (std::ranges::forward_range<Xs> && std::is_lvalue_reference_v<reference> && !is_c_string<reference> &&
                (std::is_same_v<std::remove_cvref_t<reference>, T> || copies<std::remove_cvref_t<reference>>)) {
    return make_batch<T, R>(memory, std::ranges::begin(xs), static_cast<std::size_t>(std::ranges::distance(xs)), how);
  } else {
    std::vector<T> elements;
    for (auto&& each : xs) {
      require_text("element", elements.size(), each);
      elements.push_back(to_own<T>(std::forward<decltype(each)>(each)));
    }
    return make_batch<T, R>(memory, elements.begin(), elements.size(), how);
  }
}

/// What shows the progress over a range.
template <class Xs>
std::shared_ptr<progress_meter> meter_of(const Xs& xs, const task_options& options) {
  std::optional<std::size_t> total;
  if constexpr (std::ranges::sized_range<const Xs>) total = static_cast<std::size_t>(std::ranges::size(xs));
  return make_meter(options, total);
}

}  // namespace muster::detail
