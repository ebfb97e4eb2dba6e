// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/world_core.hpp>

#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/wait/spin_policy.hpp>

#include "call_guard.hpp"
#include "sink_call.hpp"
#include "world_size.hpp"

namespace muster::detail {

namespace {

world_shape shape_of(const world_options& options) {
  const std::size_t processors = options.pin.processors();
  const auto ranks = ranks_of(options, processors);
  return {.ranks = ranks,
          .spin = spin_policy::of_process().budget,
          .is_crowded = ranks > processors,
          .master = options.master_rank};
}

std::shared_ptr<domain> domain_for_worlds() {
  if (domain::entered() != nullptr) {
    throw error(errc::invalid_argument,
                "a world was to be made in a worker, or in a program that has joined another's domain: make it in the "
                "program that is the domain's host");
  }
  return domain::of_program();
}

shared_block memory_for(domain& where, const world_shape& shape) {
  auto block = where.blocks().allocate_shared(shape.total_bytes());
  world_memory::make(block.bytes(), shape);
  return block;
}

}  // namespace

world_core::world_core(const world_options& options)
    : options_(options),
      domain_(domain_for_worlds()),
      ticket_{memory_for(*domain_, shape_of(options))},
      memory_(world_memory::attach(ticket_.memory.bytes())),
      encoder_(memory_.modules()),
      own_rank_(options.caller_computes ? std::optional<std::size_t>(options.master_rank) : std::nullopt),
      called_(options.output.to() ? std::make_shared<called_function>() : nullptr),
      devices_(options.devices.resolve()),
      is_resident_(are_all_on_devices()),
      told_(memory_.shape().ranks),
      arguments_(domain_->blocks()),
      lent_(domain_->blocks()),
      sleeper_(*domain_, {.spin = memory_.shape().spin, .is_crowded = memory_.shape().is_crowded}, memory_.place()),
      progress_(memory_.shape().ranks) {
  const scoped_lock lock(mutex_);
  for (std::size_t rank = 0; rank < ranks(); ++rank) news_.emplace_back(domain_->blocks());
  if (own_rank_) {
    own_ =
        std::make_unique<world_member>(domain_, memory_, *own_rank_, world_member::seat::caller, device_of(*own_rank_));
    own_->join();
  }
  start_ranks();
}

// A forked child has none of what would be ended: functions and variables that outlived their world may go there too.
world_core::~world_core() {
  if (is_here()) close();
}

std::shared_ptr<local_core> world_core::conductor() {
  made_in_.require_here("a world");
  const scoped_lock lock(conductor_mutex_);
  // One that was made now would be joined by nobody but itself.
  if (conductor_closed_) throw_closed();
  if (conductor_ == nullptr) {
    const thread_pool_options one{.workers = 1, .name = options_.name, .initializer = [this] {
                                    conductor_thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
                                  }};
    conductor_ = std::make_unique<thread_host>(one, one.workers, local_context_maker());
  }
  return conductor_->core();
}

bool world_core::is_conductor() const noexcept {
  return conductor_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void world_core::close() {
  const call_guard inside(caller_, options_.name);
  thread_host* conductor = nullptr;
  {
    const scoped_lock lock(conductor_mutex_);
    conductor_closed_ = true;
    conductor = conductor_.get();
  }
  if (conductor != nullptr) {
    conductor->close();
    if (!is_conductor())
      static_cast<void>(conductor->join_until(
          deadline::never()));  // without the lock: what runs there may ask for more, and is refused
  }
  scoped_lock lock(mutex_);
  if (std::exchange(closed_, true)) {
    while (!has_ended_ && !sink_call::is_of(called_.get())) ended_.wait(lock);
    return;
  }
  order(world_order::close);
  auto leaving = std::move(pool_);
  lock.unlock();  // the pool waits for the program's sink, which may use the world
  if (leaving != nullptr) leaving->close();
  leaving.reset();
  lock.lock();
  has_ended_ = true;
  ended_.notify_all();
}

bool world_core::is_inside() const noexcept {
  return caller_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

bool world_core::is_closed() const {
  if (is_inside()) return false;
  const scoped_lock lock(mutex_);
  return closed_;
}

std::vector<pid_t> world_core::pids() const {
  made_in_.require_here("a world");
  const call_guard inside(caller_, options_.name);
  const scoped_lock lock(mutex_);
  std::vector<pid_t> found;
  for (std::size_t rank = 0, process = 0; rank < ranks(); ++rank) {
    found.push_back(own_rank_ == rank ? 0 : processes_[process++].pid());
  }
  return found;
}

std::uint32_t world_core::add(registered_function what) {
  made_in_.require_here("a world");
  const call_guard inside(caller_, options_.name);
  const scoped_lock lock(mutex_);
  require_open();
  what.since = what.changed = ++changes_;
  functions_.emplace(++last_number_, std::move(what));
  return last_number_;
}

std::uint32_t world_core::add(rank_variable what) {
  made_in_.require_here("a world");
  const call_guard inside(caller_, options_.name);
  const scoped_lock lock(mutex_);
  require_open();
  const bool is_alike = !what.is_scattered;
  ++changes_;
  variables_.emplace(++last_number_, registered_variable{.what = std::move(what),
                                                         .since = changes_,
                                                         .changed = changes_,
                                                         .is_resident = is_resident_,
                                                         .is_alike = is_alike});
  return last_number_;
}

void world_core::remove_function(std::uint32_t number) noexcept {
  if (!is_here()) return;
  if (is_inside()) return dropped_functions_.push_back(number);
  function_node gone;
  const scoped_lock lock(mutex_);
  gone = erase_function(number);
}

void world_core::remove_variable(std::uint32_t number) noexcept {
  if (!is_here()) return;
  if (is_inside()) return dropped_variables_.push_back(number);
  variable_node gone;
  const scoped_lock lock(mutex_);
  gone = erase_variable(number);
}

// Ranks are told of what they may know; the caller's own has lost it with that.
world_core::function_node world_core::erase_function(std::uint32_t number) noexcept {
  const auto found = functions_.find(number);
  if (found == functions_.end()) return {};
  if (found->second.since <= offered_) gone_functions_.emplace_back(++changes_, number);
  if (own_) own_->forget(number);
  return functions_.extract(found);
}

world_core::variable_node world_core::erase_variable(std::uint32_t number) noexcept {
  const auto found = variables_.find(number);
  if (found == variables_.end()) return {};
  if (found->second.since <= offered_) gone_variables_.emplace_back(++changes_, number);
  if (own_) own_->variables().erase(number);
  return variables_.extract(found);
}

// Still inside of the call: what dies here and holds others brings them into these lists.
void world_core::erase_dropped() noexcept {
  while (!dropped_functions_.empty() || !dropped_variables_.empty()) {
    for (const auto number : std::exchange(dropped_functions_, {})) static_cast<void>(erase_function(number));
    for (const auto number : std::exchange(dropped_variables_, {})) static_cast<void>(erase_variable(number));
  }
}

void world_core::with_variables(const std::function<void(std::map<std::uint32_t, registered_variable>&)>& what) {
  made_in_.require_here("a world");
  const call_guard inside(caller_, options_.name);
  const scoped_lock lock(mutex_);
  require_open();
  try {
    with_room(call_end(), what, variables_);
  } catch (...) {
    note_changes();  // some may have other memory already
    throw;
  }
  note_changes();
}

void world_core::note_changes() {
  for (auto& [number, each] : variables_) {
    if (each.changed == 0) each.changed = ++changes_;
  }
}

void world_core::require_open() const {
  if (closed_) throw_closed();
}

void world_core::throw_closed() const {
  throw error(errc::pool_closed,
              text("world '", options_.name, "' is closed: its functions and variables cannot be used any more"));
}

}  // namespace muster::detail
