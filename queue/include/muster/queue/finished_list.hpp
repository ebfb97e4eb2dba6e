// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
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
  void tell(completion_sink& sink, task_record& record) {
    if (count_ < first_.size()) {
      first_[count_++] = {.sink = &sink, .record = &record};
    } else {
      rest().told.push_back({.sink = &sink, .record = &record});
    }
  }
  void free(block payload) { rest().freed.push_back(std::move(payload)); }
  void free(attachment_list lent) { rest().returned.push_back(std::move(lent)); }
  void call(std::vector<std::function<void()>> emptied) { rest().emptied = std::move(emptied); }
  /// Tells whom there is to tell. Requires: the mutex is not held.
  void finish() const noexcept {
    for (std::size_t index = 0; index < count_; ++index) first_[index].sink->settled(*first_[index].record);
    if (rest_ == nullptr) return;
    for (const auto& each : rest_->told) each.sink->settled(*each.record);
    for (const auto& each : rest_->emptied) each();
  }

private:
  struct end {
    completion_sink* sink;
    task_record* record;
  };
  struct items {
    std::vector<end> told;                  // behind the first ones
    std::vector<block> freed;               // payloads: giving pages back may take long
    std::vector<attachment_list> returned;  // likewise
    std::vector<std::function<void()>> emptied;
  };
  items& rest() {
    if (rest_ == nullptr) rest_ = std::make_unique<items>();
    return *rest_;
  }

  std::array<end, 16> first_;  // indeterminate beyond count_
  std::size_t count_ = 0;
  std::unique_ptr<items> rest_;
};

}  // namespace muster
