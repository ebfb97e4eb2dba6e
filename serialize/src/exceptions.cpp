// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/exceptions.hpp>

namespace muster {

const error_info* remote_info(const std::exception& exception) noexcept {
  if (const auto* task = dynamic_cast<const task_error*>(&exception)) return &task->info();
  const auto* details = dynamic_cast<const remote_details*>(&exception);
  return details != nullptr ? &details->info() : nullptr;
}

}  // namespace muster
