// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <muster/queue/detail/admission.hpp>
#include <muster/queue/detail/outgoing_frame.hpp>
#include <muster/queue/detail/task_terms.hpp>
#include <muster/queue/task_record.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster {

/// One task to run.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
struct task_request {
  function_token function{};
  outgoing_frame frame;
  unsigned retries = 0;               ///< how often it may run again
  std::string_view label;             ///< for errors; copied
  completion_sink* sink = nullptr;    ///< told when it has ended; must outlive that
  const task_terms* terms = nullptr;  ///< copied; nullptr: none
  unsigned attempt = 1;               ///< which one it is, of a chunk's first element; later ones wait retry_delay
  std::size_t lane = 1;               ///< 0: urgent, 1: normal, 2: can wait; 3 + i: only worker i
  bool chunk = false;                 ///< the sink goes on with it after a failure, not the dispatcher
  admission admitted = admission::limited;
  std::uint64_t elements = 1;  ///< of a chunk: how many, for whoever looks at its times
};

}  // namespace muster
