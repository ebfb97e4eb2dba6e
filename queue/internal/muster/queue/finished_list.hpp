// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <muster/memory/detail/block.hpp>
#include <muster/queue/task_record.hpp>

namespace muster {

/// What a section under the dispatcher's lock leaves to be done after unlocking: mostly nothing.
///
/// Make it before the lock is taken: its destructor does what finish() has not done, also when the section throws.
/// Thread safety: an object belongs to one thread. Nothing here throws; sinks are told without an allocation.
class finished_list {
public:
  finished_list() = default;
  finished_list(const finished_list&) = delete;
  finished_list& operator=(const finished_list&) = delete;
  ~finished_list() { finish(); }

  void tell(completion_sink& sink, task_record& record) noexcept {
    sink.finished_record_ = &record;
    sink.next_finished_ = nullptr;
    (last_ != nullptr ? last_->next_finished_ : first_) = &sink;
    last_ = &sink;
  }
  /// Frees it after unlocking, because giving pages back may take long; now, where there is no memory to note it.
  void free(block payload) noexcept {
    try {
      rest().freed.push_back(std::move(payload));
    } catch (const std::bad_alloc&) {
      payload.reset();
    }
  }
  /// Likewise.
  void free(attachment_list lent) noexcept {
    try {
      rest().returned.push_back(std::move(lent));
    } catch (const std::bad_alloc&) {
      static_cast<void>(attachment_list(std::move(lent)));
    }
  }
  void call(std::vector<std::function<void()>> emptied) noexcept { emptied_ = std::move(emptied); }
  /// Tells all sinks. Requires: the mutex is not held.
  void finish() noexcept {
    while (first_ != nullptr) {
      auto& sink = *std::exchange(first_, first_->next_finished_);
      sink.settled(*sink.finished_record_);  // it may delete itself
    }
    last_ = nullptr;
    for (const auto& each : std::exchange(emptied_, {})) each();
  }

private:
  struct items {
    std::vector<block> freed;
    std::vector<attachment_list> returned;
  };
  items& rest() {
    if (rest_ == nullptr) rest_ = std::make_unique<items>();
    return *rest_;
  }

  completion_sink* first_ = nullptr;
  completion_sink* last_ = nullptr;
  std::vector<std::function<void()>> emptied_;
  std::unique_ptr<items> rest_;
};

}  // namespace muster
