// SPDX-License-Identifier: BSL-1.0
// Services and values by name.
#include <optional>
#include <utility>

#include <muster/base/detail/demangle.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/rpc/detail/remote_state.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/serialize/exceptions.hpp>

#include "service_state.hpp"

namespace muster::detail {

namespace {

const char* word_for(named_kind kind) noexcept { return kind == named_kind::service ? "served" : "published"; }

named_thing own_name(const rpc_core& core, named_kind kind, const std::string& name) {
  named_thing own;
  own.kind = kind;
  own.name = name;
  own.member = core.index();
  own.incarnation = core.incarnation();
  return own;
}

void insert(rpc_core& core, const named_thing& what) {
  const auto other = core.names().insert(what, core.end_of_call({}));
  if (!other) {
    if (core.has_left()) core.names().erase(what);  // behind what leave() has erased
    core.require_member();
    return core.tell_news();
  }
  throw error(errc::invalid_argument,
              text("'", what.name, "' is ", word_for(what.kind), " by '", core.table().name_of(other->member),
                   "' in the RPC group '", core.table().name(), "' already: take another name"));
}

named_thing require(rpc_core& core, named_kind kind, const std::string& name, const type_mark& type, bool waits) {
  std::optional<named_thing> found;
  const auto is_there = [&] { return (found = core.look_up(kind, name)).has_value(); };
  if (!is_there() && (!waits || !core.await_news(is_there, core.end_of_call({})))) {
    const auto why =
        text("'", name, "' is ", word_for(kind), " by no member of the RPC group '", core.table().name(), "'");
    if (waits) throw task_error(error_info(errc::timed_out, why + ", and was not in time"));
    throw error(errc::invalid_argument, why);
  }
  if (found->type == type.fingerprint) return *std::move(found);
  throw error(errc::invalid_argument,
              text("'", name, "' is ", word_for(kind), " by '", core.table().name_of(found->member),
                   "' as another type than ", demangle(type.name), ": the types must be equal"));
}

}  // namespace

std::optional<named_thing> rpc_core::look_up(named_kind kind, const std::string& name) const {
  auto found = names_.find(kind, name);
  if (!found) return std::nullopt;
  const auto owner = member_view::of(table_, found->member);
  if (owner.incarnation != found->incarnation || !owner.is_here(*domain_)) return std::nullopt;
  return found;
}

call_peer rpc_core::owner_of(const named_thing& what) const noexcept {
  const auto found = member_view::of(table_, what.member);
  return {.member = what.member, .incarnation = what.incarnation, .who = found.who};
}

void serve(const core_ptr& core, const std::string& name, const type_mark& type, const service_options& how,
           service_function run) {
  core->require_member();
  auto offered = std::make_shared<offered_service>();
  offered->id = core->new_id();
  offered->name = name;
  offered->type = type.fingerprint;
  offered->line = core->line_for(how);
  offered->run = std::move(run);
  core->services().add(offered);
  auto what = own_name(*core, named_kind::service, name);
  what.object = offered->id;
  what.type = type.fingerprint;
  try {
    insert(*core, what);
  } catch (...) {
    core->services().remove(offered->id);
    throw;
  }
}

service_ptr find_service(const core_ptr& core, const std::string& name, const type_mark& type, bool waits) {
  core->require_member();
  const auto found = require(*core, named_kind::service, name, type, waits);
  return std::make_shared<service_state>(
      service_state{.core = core, .name = name, .owner = core->owner_of(found), .id = found.object});
}

std::shared_ptr<future_home> home_of(const core_ptr& core) { return core; }

std::shared_ptr<future_home> home_of(const service_ptr& which) {
  if (which == nullptr) throw_no_service();
  return which->core;
}

std::shared_ptr<future_home> home_of(const remote_handle& which) { return which.state().core(); }

remote_handle keep_value(const core_ptr& core, std::shared_ptr<void> value) {
  core->require_member();
  auto stored = std::make_shared<stored_value>();
  stored->id = core->new_id();
  stored->cell = core->where().blocks().allocate_cell();
  stored->value = std::move(value);
  stored->is_made = true;
  core->values().add(stored);
  const call_peer self{.member = core->index(),
                       .incarnation = core->incarnation(),
                       .who = member_view::of(core->table(), core->index()).who};
  return remote_handle(std::make_shared<remote_state>(core, self, stored->id, stored->cell));
}

void publish_value(const core_ptr& core, const std::string& name, const type_mark& type, const remote_handle& which) {
  core->require_member();
  auto& state = which.state();
  const auto stored = state.is_local() ? core->values().find(state.id()) : nullptr;
  if (stored == nullptr) {
    throw error(errc::invalid_argument, text("'", name, "' cannot be published here: the value is at '", which.owner(),
                                             "', which has to do that"));
  }
  auto what = own_name(*core, named_kind::value, name);
  what.object = stored->id;
  what.cell = core->where().blocks().name_of(stored->cell);
  what.type = type.fingerprint;
  ++stored->names;
  try {
    insert(*core, what);
  } catch (...) {
    --stored->names;
    throw;
  }
}

namespace {

// Nothing where no process holds it any more.
shared_block try_keep(arena& memory, std::uint64_t cell) {
  try {
    auto found = memory.borrow(cell);
    memory.keep(found);
    return found;
  } catch (const error& failure) {
    if (failure.code() != errc::corrupted) throw;
  }
  return {};
}

}  // namespace

// Again where its owner has withdrawn it, and let it go, since it was found: the name is of another by now, or of none.
remote_handle find_value(const core_ptr& core, const std::string& name, const type_mark& type, bool waits) {
  core->require_member();
  for (std::uint64_t before = 0;;) {
    const auto found = require(*core, named_kind::value, name, type, waits);
    if (auto cell = try_keep(core->where().blocks(), found.cell)) {
      return remote_handle(std::make_shared<remote_state>(core, core->owner_of(found), found.object, std::move(cell)));
    }
    if (std::exchange(before, found.cell) == found.cell) {
      throw error(errc::corrupted,
                  text("the value '", name, "' is published, and not there: its entry has been overwritten"));
    }
  }
}

}  // namespace muster::detail
