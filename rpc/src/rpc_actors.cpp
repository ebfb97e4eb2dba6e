// SPDX-License-Identifier: BSL-1.0
// Actors: at the program's member, and in their own processes.
#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/rpc/detail/actor_host.hpp>
#include <muster/rpc/detail/remote_state.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/rpc/detail/served_call.hpp>

#include "rpc_keeper.hpp"

namespace muster::detail {

namespace {

[[noreturn]] void refuse(const group_table& table, const std::string& name, const std::string& why) {
  throw error(errc::invalid_argument,
              text("the actor '", name, "' of the RPC group '", table.name(), "' cannot be started: ", why));
}

void require_actor_name(const group_table& table, const std::string& name) {
  if (name.empty()) refuse(table, name, "its name is empty");
  if (name.size() > member_line::most_name_bytes) {
    refuse(table, name, text("its name has ", name.size(), " bytes; it may have ", member_line::most_name_bytes));
  }
}

bool is_free(const group_table& table, const domain& where, std::size_t member) noexcept {
  return !is_kept_actor(table, member) && !member_view::of(table, member).is_here(where);
}

// A line of its own, or the ticket's, where it has that name.
std::size_t line_for_actor(const group_table& table, const domain& where, const std::string& name) {
  if (const auto found = table.find(name)) {
    if (!is_free(table, where, *found)) refuse(table, name, "a living member has that name");
    return *found;
  }
  const auto& shape = table.shape();
  for (std::size_t member = shape.named; member < shape.members; ++member) {
    if (is_free(table, where, member)) return member;
  }
  throw error(errc::out_of_memory, text("there is no room for the actor '", name, "': the RPC group '", table.name(),
                                        "' has ", shape.members - shape.named,
                                        " already; make its ticket with more (rpc_ticket_options::most_actors)"));
}

struct claimed_line {
  std::size_t member = 0;
  actor_state before = actor_state::none;
};

// Two members of the program may start actors at once.
claimed_line claim_line(const group_table& table, const domain& where, const std::string& name) {
  for (;;) {
    const auto member = line_for_actor(table, where, name);
    auto& word = table.member(member).actor;
    auto found = word.load(std::memory_order_seq_cst);
    constexpr auto kept = static_cast<std::uint64_t>(actor_state::kept);
    if (found != kept && word.compare_exchange_strong(found, kept, std::memory_order_seq_cst)) {
      return {.member = member, .before = static_cast<actor_state>(found)};
    }
  }
}

}  // namespace

core_ptr serving_core() {
  auto* const here = acting_member::current();
  return here != nullptr ? here->shared_from_this() : nullptr;
}

std::string actor_host_of(const core_ptr& core) {
  const auto& table = core->table();
  if (core->where().self() == participant_id::host) return {};
  for (std::size_t member = 0; member < table.shape().named; ++member) {
    const auto found = member_view::of(table, member);
    if (found.serves && found.is_here(core->where()) && found.who.participant == participant_id::host) {
      return table.name_of(member);
    }
  }
  throw error(errc::invalid_argument, text("no actor can be started in the RPC group '", table.name(),
                                           "': the program does that, and has no member that serves; make an "
                                           "rpc_group there, and keep it"));
}

remote_handle start_actor_here(const core_ptr& core, const std::string& name, const actor_options& how,
                               actor_launcher launcher) {
  if (core == nullptr) throw error(errc::invalid_argument, "an actor was to be started outside of a group");
  return core->start_actor(name, how, std::move(launcher));
}

void serve_actor(const rpc_ticket& ticket, const actor_role& role, const std::function<std::shared_ptr<void>()>& make) {
  auto stored = std::make_shared<stored_value>();
  stored->id = role.object;
  stored->value = make();
  stored->is_made = true;
  stored->names = 1;  // it stays without references, until the program says that there are none
  const auto core = rpc_core::join(ticket, role.name, {.threads = role.threads}, stored);
  core->await_retirement();
  core->leave();
}

// References hold the cell, and so does the member that keeps the actor: when it is the last one, the actor ends.
remote_handle rpc_core::start_actor(const std::string& name, const actor_options& how, actor_launcher launcher) {
  require_member();
  require_actor_name(table_, name);
  await_end_of_actor(name);
  auto kept = std::make_shared<stored_value>();
  kept->id = new_id();
  kept->cell = domain_->blocks().allocate_cell();
  auto made = add_actor({.name = name, .object = kept->id, .threads = how.threads}, how, std::move(launcher));
  try {
    made->start();
  } catch (...) {
    made->end();
    drop_actor(made);
    throw;
  }
  kept->value = std::shared_ptr<void>(nullptr, [made](void*) { made->end(); });
  kept->is_made = true;
  values_.add(kept);
  if (has_left() && values_.remove(kept->id) != nullptr) {  // behind what leave() has let go of
    made->end();
    drop_actor(made);
    require_member();
  }
  const call_peer self{.member = index_, .incarnation = incarnation_, .who = member_view::of(table_, index_).who};
  return remote_handle(std::make_shared<remote_state>(shared_from_this(), self, kept->id, kept->cell, made->member()));
}

// Of one that had the name, and nothing refers to any more, whether or not that was noticed.
void rpc_core::await_end_of_actor(const std::string& name) {
  std::shared_ptr<actor_host> before;
  {
    const scoped_lock lock(actors_mutex_);
    for (const auto& each : actors_) {
      if (table_.name_of(each->member()) == name) before = each;
    }
  }
  if (before == nullptr) return;
  if (const auto value = values_.find(before->object())) look_at(value);
  if (before->is_ending()) static_cast<void>(await_news([&] { return before->is_over(); }, end_of_call({})));
}

std::shared_ptr<actor_host> rpc_core::add_actor(actor_role role, const actor_options& how, actor_launcher launcher) {
  tidy_actors();
  const scoped_lock lock(actors_mutex_);
  if (starts_no_more_) require_member();
  std::vector<std::shared_ptr<message_ring>> rings = rpc_keeper::make_rings(table_.shape());
  const auto [member, before] = claim_line(table_, *domain_, role.name);
  auto& line = table_.member(member);
  if (member >= table_.shape().named) {
    if (before == actor_state::none) table_.clear_calls_of(member);
    line.requests.store(domain_->blocks().name_of(rings[0]->block()), std::memory_order_seq_cst);
    line.replies.store(domain_->blocks().name_of(rings[1]->block()), std::memory_order_seq_cst);
    table_.set_name(member, role.name);
  }
  auto made = std::make_shared<actor_host>(*this, member, std::move(role), how, std::move(launcher), std::move(rings));
  actors_.push_back(made);
  return made;
}

void rpc_core::drop_actor(const std::shared_ptr<actor_host>& which) noexcept {
  which->join();
  table_.member(which->member()).actor.store(static_cast<std::uint64_t>(actor_state::over), std::memory_order_seq_cst);
  tell_news();
  const scoped_lock lock(actors_mutex_);
  std::erase(actors_, which);
}

// Those that are over; what is left of them is let go of here.
void rpc_core::tidy_actors() noexcept {
  std::vector<std::shared_ptr<actor_host>> ended;
  {
    const scoped_lock lock(actors_mutex_);
    const auto first =
        std::partition(actors_.begin(), actors_.end(), [](const auto& each) { return !each->is_over(); });
    ended.assign(first, actors_.end());
    actors_.erase(first, actors_.end());
  }
  for (const auto& each : ended) each->join();
}

void rpc_core::end_actors() noexcept {
  std::vector<std::shared_ptr<actor_host>> all;
  {
    const scoped_lock lock(actors_mutex_);
    starts_no_more_ = true;
    all.swap(actors_);
  }
  for (const auto& each : all) each->end();
  for (const auto& each : all) each->join();
}

void rpc_core::await_retirement() {
  scoped_lock lock(leaving_);
  while (!is_retired_) ended_.wait(lock);
}

void rpc_core::retire() noexcept {
  const scoped_lock lock(leaving_);
  is_retired_ = true;
  ended_.notify_all();
}

}  // namespace muster::detail
