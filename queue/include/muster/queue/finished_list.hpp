// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <muster/memory/block.hpp>
#include <muster/queue/task_record.hpp>

namespace muster {

/// What a section under the dispatcher's lock leaves to be done after unlocking: mostly nothing.
///
/// Thread safety: an object belongs to one thread.
class finished_list {
public:
  void tell(completion_sink& sink, task_record& record) { rest().told.emplace_back(&sink, &record); }
  void free(block payload) { rest().freed.push_back(std::move(payload)); }
  void call(std::function<void()> emptied) { rest().emptied = std::move(emptied); }
  /// Tells whom there is to tell. Requires: the mutex is not held.
  void finish() const noexcept {
    if (rest_ != nullptr) rest_->finish();
  }

private:
  struct items {
    void finish() const noexcept {
      for (const auto& [sink, record] : told) sink->settled(*record);
      if (emptied) emptied();
    }

    std::vector<std::pair<completion_sink*, task_record*>> told;  // sinks, of which task
    std::vector<block> freed;                                     // payloads: giving pages back may take long
    std::function<void()> emptied;
  };
  items& rest() {
    if (rest_ == nullptr) rest_ = std::make_unique<items>();
    return *rest_;
  }

  std::unique_ptr<items> rest_;
};

}  // namespace muster
