// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/context.hpp>

#include <muster/pool/detail/local_worker.hpp>

namespace muster {

namespace {

// Of this worker process; written before its first task and after its last.
std::shared_ptr<void>& process_context() noexcept {
  static std::shared_ptr<void> instance;
  return instance;
}

}  // namespace

void* detail::current_context() noexcept {
  const auto* const thread = local_worker::current();
  return thread != nullptr ? thread->context : process_context().get();
}

void detail::set_process_context(std::shared_ptr<void> context) noexcept { process_context() = std::move(context); }

}  // namespace muster
