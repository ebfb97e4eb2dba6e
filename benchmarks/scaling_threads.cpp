// SPDX-License-Identifier: BSL-1.0
#include "scaling_threads.hpp"

#include <thread>

namespace scaling {

std::span<counting_word> threads::make_words(line_kind kind, std::size_t count, std::size_t) {
  const std::span<word> made(memory_.emplace_back(std::make_unique<word[]>(count)).get(), count);
  for (auto& each : made) each.set_kind(kind);
  return made;
}

void threads::run(std::vector<job> jobs) {
  std::vector<std::jthread> running;
  running.reserve(jobs.size());
  for (auto& each : jobs) {
    running.emplace_back([body = std::move(each.body)] {
      counting_word::of_this_thread() = {};
      body();
    });
  }
}

void threads::work(nanoseconds time) {
  if (time.count() == 0) return;
  for (const auto end = now() + time; now() < end;) muster::relax_processor();
}

void threads::pause(std::size_t times) {
  for (; times > 0; --times) muster::relax_processor();
}

void threads::sleep_on(word& what, std::uint64_t expected) {
  ++counting_word::of_this_thread().sleeps;
  muster::futex_wait(muster::futex_address(what.native()), static_cast<std::uint32_t>(expected),
                     muster::futex_scope::within_process);
}

void threads::wake(word& what, std::size_t count) {
  ++counting_word::of_this_thread().wakes;
  muster::futex_wake(muster::futex_address(what.native()), static_cast<int>(count),
                     muster::futex_scope::within_process);
}

}  // namespace scaling
