// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include <muster/collectives/detail/call_queue.hpp>
#include <muster/collectives/detail/mailbox.hpp>
#include <muster/collectives/detail/rank_end.hpp>
#include <muster/collectives/group.hpp>

#include "collective_calls.hpp"

namespace muster {

// The calls are made one at a time: by the caller while nothing is queued, else by the group's thread.
struct group::impl {
  impl(std::shared_ptr<domain> where, shared_block block, std::size_t rank);
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;
  ~impl();

  /// Makes a call, or has it made after those that are queued.
  template <class Call>
  auto make(Call call);
  work queue(std::function<tensor()> call);

  const std::shared_ptr<detail::rank_end> end;
  detail::collective_calls calls;
  const std::shared_ptr<detail::mailbox> mail;
  std::atomic<bool> busy = false;
  std::uint64_t made = 0;  // calls so far, queued or not
  detail::call_queue queued;
};

namespace detail {

/// Says that a call is being made: two threads of one rank must not.
class one_call_at_a_time {
public:
  explicit one_call_at_a_time(std::atomic<bool>& busy);
  one_call_at_a_time(const one_call_at_a_time&) = delete;
  one_call_at_a_time& operator=(const one_call_at_a_time&) = delete;
  ~one_call_at_a_time() { busy_.store(false, std::memory_order_release); }

private:
  std::atomic<bool>& busy_;
};

}  // namespace detail

template <class Call>
auto group::impl::make(Call call) {
  if (queued.is_idle()) {
    const detail::one_call_at_a_time guard(busy);
    ++made;
    return call();
  }
  queued.require_other_thread();
  // Everything that it captures lives until it has ended.
  if constexpr (std::is_void_v<decltype(call())>) {
    queue([&] {
      call();
      return tensor();
    }).wait();
  } else {
    decltype(call()) result{};
    queue([&] {
      result = call();
      return tensor();
    }).wait();
    return result;
  }
}

}  // namespace muster
