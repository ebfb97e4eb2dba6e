// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/stop_watch.hpp>

#include <array>
#include <chrono>
#include <climits>
#include <exception>

#include <muster/base/clock.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/queue/slot_protocol.hpp>

namespace muster {

stop_watch::stop_watch(task_slot& slot, const slot_word& claimed) : slot_(slot), claimed_(claimed) {
  if (slot_protocol::read(slot_.word).has(slot_flag::stop)) {
    source_.request_stop();
    return;
  }
  thread_ = start_thread([this] {
    watch();
    gone_.store(1, std::memory_order_release);
    futex_wake(futex_address(gone_), INT_MAX, futex_scope::within_process);
  });
}

stop_watch::~stop_watch() {
  if (!thread_.joinable()) return;
  ended_.store(1, std::memory_order_seq_cst);
  futex_wake(futex_address(ended_), INT_MAX, futex_scope::shared);
  if (has_slot_only_.load(std::memory_order_seq_cst)) wake_at_slot();
  thread_.join();
}

// The word does not change for it, so a wake that comes between its look and its sleep is missed. Others who sleep
// there look again.
void stop_watch::wake_at_slot() const noexcept {
  while (gone_.load(std::memory_order_acquire) == 0) {
    futex_wake(futex_address(slot_.word), INT_MAX, futex_scope::shared);
    futex_wait(futex_address(gone_), 0, futex_scope::within_process, deadline::after(std::chrono::milliseconds(1)));
  }
}

void stop_watch::watch() noexcept {
  while (ended_.load(std::memory_order_seq_cst) == 0) {
    const auto found = slot_protocol::read(slot_.word);
    if (found.generation() != claimed_.generation() || found.state() != slot_state::claimed) return;  // overwritten
    if (found.has(slot_flag::stop)) {
      source_.request_stop();
      return;
    }
    sleep_while(static_cast<std::uint32_t>(found.bits()));
  }
}

// Who has said that the slot's word is all it has looks once more whether this has ended: it or the destructor sees
// what the other has written.
void stop_watch::sleep_while(std::uint32_t found) noexcept {
  if (has_slot_only_.load(std::memory_order_relaxed)) {
    futex_wait(futex_address(slot_.word), found, futex_scope::shared);
    return;
  }
  try {
    const std::array<futex_expectation, 2> words = {
        futex_expectation{.word = futex_address(slot_.word), .expected = found},
        futex_expectation{.word = futex_address(ended_), .expected = 0}};
    futex_wait_any(words, futex_scope::shared);
  } catch (const std::exception&) {  // no such call before Linux 5.16, or not for this process
    has_slot_only_.store(true, std::memory_order_seq_cst);
  }
}

}  // namespace muster
