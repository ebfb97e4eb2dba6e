// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include <muster/queue/outgoing_frame.hpp>
#include <muster/queue/task_record.hpp>
#include <muster/serialize/function_token.hpp>

namespace muster {

/// One task to run.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
struct task_request {
  function_token function{};
  outgoing_frame frame;
  unsigned retries = 0;                ///< how often it may run again after its worker died
  std::string_view label;              ///< for errors; copied
  completion_sink* sink = nullptr;     ///< told when it has ended; must outlive that
  std::chrono::nanoseconds timeout{};  ///< how long it, or an element of it, may run; 0: as long as it likes
  std::size_t lane = 1;                ///< 0: urgent, 1: normal, 2: can wait; 3 + i: only worker i
  bool chunk = false;                  ///< on a death the sink goes on with it, not the dispatcher
  bool limited = true;                 ///< counts against max_pending
};

}  // namespace muster
