// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/stop_watch.hpp>

#include <array>
#include <climits>

#include <muster/base/futex.hpp>
#include <muster/base/signals_blocked.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/queue/slot_protocol.hpp>

namespace muster {

stop_watch::stop_watch(task_slot& slot, const slot_word& claimed) : slot_(slot), claimed_(claimed) {
  if (slot_protocol::read(slot_.word).has(slot_flag::stop)) {
    source_.request_stop();
    return;
  }
  const signals_blocked scope;
  thread_ = start_thread([this] { watch(); });
}

stop_watch::~stop_watch() {
  if (!thread_.joinable()) return;
  ended_.store(1, std::memory_order_release);
  futex_wake(futex_address(ended_), INT_MAX, futex_scope::shared);
  thread_.join();
}

void stop_watch::watch() noexcept {
  while (ended_.load(std::memory_order_acquire) == 0) {
    const auto found = slot_protocol::read(slot_.word);
    if (found.generation() != claimed_.generation() || found.state() != slot_state::claimed) return;  // overwritten
    if (found.has(slot_flag::stop)) {
      source_.request_stop();
      return;
    }
    const std::array<futex_expectation, 2> words = {
        futex_expectation{.word = futex_address(slot_.word), .expected = static_cast<std::uint32_t>(found.bits())},
        futex_expectation{.word = futex_address(ended_), .expected = 0}};
    futex_wait_any(words, futex_scope::shared);
  }
}

}  // namespace muster
