// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/actor_host.hpp>

#include <csignal>
#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

namespace muster::detail {

actor_host::actor_host(rpc_core& core, std::size_t member, actor_role role, const actor_options& how,
                       actor_launcher launch, std::vector<std::shared_ptr<message_ring>> rings)
    : core_(core),
      member_(member),
      role_(std::move(role)),
      how_(how),
      launch_(std::move(launch)),
      rings_(std::move(rings)),
      incarnation_(member_view::of(core.table(), member).incarnation),
      restarts_left_(how.restarts) {}

actor_host::process_ptr actor_host::launch() const {
  const auto devices = how_.device.is_cpu() ? device_choice() : device_choice({how_.device});
  return std::make_shared<process>(
      launch_({.name = role_.name, .grace = how_.grace, .devices = devices}, core_.ticket(), role_));
}

actor_host::process_ptr actor_host::current() const {
  const scoped_lock lock(mutex_);
  return process_;
}

bool actor_host::is_ending() const {
  const scoped_lock lock(mutex_);
  return ending_;
}

bool actor_host::has_joined() const noexcept {
  const auto found = member_view::of(core_.table(), member_);
  return found.incarnation != incarnation_ && found.state != presence::expected;
}

void actor_host::start() {
  auto first = launch();
  {
    const scoped_lock lock(mutex_);
    process_ = first;
    watcher_ = start_thread([self = shared_from_this()] { self->watch(); });
    if (ending_) first->kill(SIGKILL);
  }
  const bool is_told = core_.await_news([&] { return has_joined() || is_over(); }, core_.end_of_call({}));
  if (has_joined()) return;
  if (!is_told) {
    throw error(errc::timed_out, text("the actor '", role_.name,
                                      "' has not joined its group in time: its constructor "
                                      "has not returned"));
  }
  first->watch();  // throws
  throw error(errc::start_failed, text("the actor '", role_.name, "' ended before it joined its group"));
}

// What was never here is not started again: its caller is told.
void actor_host::watch() noexcept {
  for (auto now = current();; now = current()) {
    now->join();
    try {
      if (!has_joined() || !restart(*now)) break;
    } catch (const std::exception&) {  // it cannot be started any more: its callers are told that it is lost
      break;
    }
  }
  core_.table().member(member_).actor.store(static_cast<std::uint64_t>(actor_state::over), std::memory_order_seq_cst);
  over_.store(true, std::memory_order_release);
  core_.tell_news();
}

// Not one that has ended by itself. One that is to end while it is being started is told by the request that it finds.
bool actor_host::restart(const process& ended) {
  {
    const scoped_lock lock(mutex_);
    const auto how = ended.exit_status();
    if (ending_ || restarts_left_ == 0 || (how && how->success())) return false;
    --restarts_left_;
  }
  auto next = launch();
  const scoped_lock lock(mutex_);
  process_ = next;
  if (ending_) next->kill(SIGKILL);
  return true;
}

void actor_host::end_within_grace(const process& which) const noexcept {
  try {
    if (!which.join_for(how_.grace)) which.terminate();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): its object's destructor tries again
  }
}

void actor_host::end() noexcept {
  process_ptr which;
  {
    const scoped_lock lock(mutex_);
    if (std::exchange(ending_, true) || process_ == nullptr || is_over()) return;
    try {
      ender_ = start_thread([self = shared_from_this(), now = process_] { self->end_within_grace(*now); });
    } catch (const std::exception&) {
      which = process_;
    }
  }
  core_.push_notice(member_, request_kind::retire, role_.object);
  if (which != nullptr) end_within_grace(*which);
}

// The last one that has it may be one of its own threads.
actor_host::~actor_host() {
  const scoped_lock lock(mutex_);
  for (auto* const each : {&watcher_, &ender_}) {
    if (!each->joinable()) continue;
    if (each->get_id() == std::this_thread::get_id()) {
      each->detach();
    } else {
      each->join();
    }
  }
}

void actor_host::join() noexcept {
  std::thread watcher;
  std::thread ender;
  {
    const scoped_lock lock(mutex_);
    watcher = std::move(watcher_);
    ender = std::move(ender_);
  }
  if (watcher.joinable()) watcher.join();
  if (ender.joinable()) ender.join();
}

}  // namespace muster::detail
