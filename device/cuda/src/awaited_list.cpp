// SPDX-License-Identifier: BSL-1.0
#include "awaited_list.hpp"

#include <utility>

namespace muster::detail {

void awaited_list::drop_those_that_came() {
  std::erase_if(all_, [](const awaited& each) { return is_there(anchor_in(each.anchor), each.what.count); });
}

void awaited_list::add(const shared_block& anchor, const device_promise& what) {
  const scoped_lock lock(mutex_);
  drop_those_that_came();
  all_.push_back({.keeper = domain::of(anchor), .anchor = anchor, .what = what});
}

void awaited_list::forget(const shared_block& anchor, std::uint64_t count) {
  const scoped_lock lock(mutex_);
  std::erase_if(all_,
                [&](const awaited& each) { return each.anchor.data() == anchor.data() && each.what.count == count; });
}

// What another thread has had the stream wait for meanwhile may still come.
void awaited_list::require_all() {
  std::vector<awaited> lost;
  {
    const scoped_lock lock(mutex_);
    drop_those_that_came();
    std::erase_if(all_, [&](awaited& each) {
      if (!never_comes(anchor_in(each.anchor), each.what.count)) return false;
      lost.push_back(std::move(each));
      return true;
    });
  }
  if (!lost.empty()) throw_lost(anchor_in(lost.front().anchor), lost.front().what);
}

}  // namespace muster::detail
