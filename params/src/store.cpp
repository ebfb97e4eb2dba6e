// SPDX-License-Identifier: BSL-1.0
#include <muster/params/store.hpp>

#include <algorithm>

#include <muster/device/tensor.hpp>
#include <muster/params/detail/store_core.hpp>

#include "store_parts.hpp"

namespace muster {

store::store(const store_ticket& ticket) : core_(detail::store_core::open(ticket)) {}

push_result store::push(const store_key& key, tensor&& value, const push_options& how) const {
  return detail::push_given(core_, key, value, how.expected);
}

tensor store::empty_like(const tensor& other) const { return detail::empty_like(core_, other); }

store detail::store_parts::opened_again(const store& of) {
  auto same = of;
  same.core_ = of.core_->open_again();
  return same;
}

std::uint64_t store::version(const store_key& key) const {
  const auto line = core_->find_line(key);
  return line ? core_->look(*line).version() : 0;
}

bool detail::wait_for_change(const store& of, const store_key& key, const std::function<bool()>& done, deadline until) {
  return of.core_->wait(key, done, until);
}

void detail::wake_waiters(const store& of) { of.core_->wake_all(); }

bool store::wait_for(const store_key& key, std::uint64_t version, std::chrono::nanoseconds timeout) const {
  const auto is_there = [&] { return this->version(key) >= version; };
  return core_->wait(key, is_there, core_->end_of_wait(timeout));
}

std::vector<store_key> store::keys() const {
  core_->require_here();
  std::vector<store_key> all;
  core_->table().for_each([&](std::size_t line) {
    if (core_->look(line).version() != 0) all.push_back(core_->table().key_of(line));
  });
  std::sort(all.begin(), all.end());
  return all;
}

bool store::erase(const store_key& key) const {
  const auto line = core_->find_line(key);
  return line && core_->erase(*line);
}

}  // namespace muster
