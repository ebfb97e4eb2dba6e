// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/queue/dispatcher.hpp>

namespace muster {

/// What the parent knows of one request cell, and who is told of the end of its task.
struct dispatcher::nested_request final : completion_sink {
  void settled(task_record& record) noexcept override { owner->answer(*this, record); }

  dispatcher* owner = nullptr;
  std::uint16_t worker = 0;
  std::uint16_t cell = 0;
  bool postponed = false;
  std::uint64_t generation = 0;
  task_record* child = nullptr;  // until it is answered
  block reply;                   // until the worker has read it
};

}  // namespace muster
