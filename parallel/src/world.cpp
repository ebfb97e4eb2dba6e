// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/world.hpp>

#include <utility>

#include <muster/base/text.hpp>
#include <muster/parallel/detail/world_core.hpp>
#include <muster/pool/future.hpp>

namespace muster {

world::world(const world_options& options) : core_(std::make_shared<detail::world_core>(options)) {}

// Inside of a call the function that runs has the ranks still: they leave with the last function that is dropped.
world::~world() {
  if (core_->is_inside()) {
    core_->trace().end();
  } else if (core_->is_here()) {
    close();
  } else {
    detail::leave_to_parent(std::move(core_));
  }
}

void world::close() {
  core_->close();
  core_->trace().end();
}

void world::trace_to(const std::filesystem::path& file) { core_->trace().begin(file, core_->options().name, ranks()); }

void world::end_trace() { core_->trace().end(); }

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
