// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/exceptions.hpp>

#include <muster/serialize/detail/thrown_object.hpp>

namespace muster {

const error_info* detail::find_origin(const void* part) noexcept { return thrown_origin::find(part); }

const error_info* remote_info(const std::exception& exception) noexcept {
  if (const auto* task = dynamic_cast<const task_error*>(&exception)) return &task->info();
  return detail::find_origin(&exception);
}

}  // namespace muster
