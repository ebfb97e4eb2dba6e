// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/world.hpp>

#include <exception>
#include <utility>

#include <muster/async/future.hpp>
#include <muster/base/log.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/function_core.hpp>
#include <muster/parallel/detail/world_core.hpp>

namespace muster {

world::world(const world_options& options) : core_(std::make_shared<detail::world_core>(options)) {}

namespace {

void end(detail::world_core& core) {
  core.close();
  core.trace().end();
}

// Where nobody is who could be told of a trace that cannot be completed.
void end_and_log(detail::world_core& core) noexcept {
  try {
    end(core);
  } catch (const std::exception& failure) {
    if (const auto& log = core.options().log) log(log_level::error, failure.what());
  }
}

// Inside of a call, or in the thread that makes those in the background, as what one of them was given may be the
// world's last owner: it would wait for itself. Where no thread can be started, the world is closed with the last of
// its functions.
void end_after_call(const std::shared_ptr<detail::world_core>& core) noexcept {
  try {
    start_thread([core] { end_and_log(*core); }).detach();
  } catch (const std::exception& failure) {
    if (const auto& log = core->options().log) log(log_level::error, failure.what());
  }
}

}  // namespace

world::~world() {
  if (!core_->is_here()) {
    detail::leave_to_parent(std::move(core_));
  } else if (core_->is_inside() || core_->is_conductor()) {
    end_after_call(core_);
  } else {
    end_and_log(*core_);
  }
}

void world::close() {
  core_->require_here();
  end(*core_);
}

void world::trace_to(const std::string& file) {
  core_->require_here();
  core_->trace().begin(file, core_->options().name, ranks());
}

void world::end_trace() {
  core_->require_here();  // a forked child has the file, too, and what is not written of it yet
  core_->trace().end();
}

std::size_t world::ranks() const noexcept { return core_->ranks(); }

std::size_t world::master_rank() const noexcept { return core_->options().master_rank; }

void world::distribute() { core_->distribute(); }

std::vector<pid_t> world::pids() const { return core_->pids(); }

std::uint64_t world::replaced_ranks() const noexcept { return core_->replaced(); }

token_encoder& world::tokens() const noexcept { return core_->functions(); }

std::shared_ptr<detail::function_core> world::enter(detail::registered_function what,
                                                    std::vector<variable> used) const {
  if (what.spec.name.empty()) what.spec.name = text("function ", core_->next_function());
  return std::make_shared<detail::function_core>(core_, std::move(what), std::move(used));
}

}  // namespace muster
