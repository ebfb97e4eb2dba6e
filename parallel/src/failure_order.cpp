// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/failure_order.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace muster::detail {

namespace {

using kind = call_failure::kind;

bool names(const call_failure& which, const call_failure& other) {
  return which.rank != other.rank && which.caused_by.test(other.rank);
}

// Of what is known; numbers decide where nothing is.
bool must_follow(const call_failure& which, const call_failure& first) {
  if (first.how == kind::died && which.how != kind::died) {
    return which.ended.test(first.rank) || names(which, first);
  }
  if (which.how == kind::died && first.how != kind::died) {
    return !first.ended.test(which.rank) && !names(first, which);
  }
  return first.how == kind::threw && names(which, first) && !names(first, which);
}

}  // namespace

void sort_by_cause(std::vector<call_failure>& all) {
  std::ranges::sort(all, {}, [](const call_failure& each) { return std::tuple(each.number, each.rank); });
  for (auto next = all.begin(); next != all.end(); ++next) {
    const auto is_free = [&](const call_failure& each) {
      return std::none_of(next, all.end(),
                          [&](const call_failure& other) { return &other != &each && must_follow(each, other); });
    };
    const auto first = std::find_if(next, all.end(), is_free);
    if (first != all.end()) std::rotate(next, first, first + 1);
  }
}

}  // namespace muster::detail
