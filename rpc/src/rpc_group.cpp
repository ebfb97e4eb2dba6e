// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/rpc_group.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

namespace muster {

rpc_group::rpc_group(const rpc_ticket& ticket, const std::string& member, const rpc_options& options)
    : core_(detail::rpc_core::join(ticket, member, options)) {}

rpc_group::rpc_group(detail::core_ptr core, bool owns) noexcept : core_(std::move(core)), owns_(owns) {}

rpc_group::rpc_group(rpc_group&& other) noexcept : core_(std::move(other.core_)), owns_(other.owns_) {}

rpc_group& rpc_group::operator=(rpc_group&& other) noexcept {
  rpc_group moved(std::move(other));
  std::swap(core_, moved.core_);
  std::swap(owns_, moved.owns_);
  return *this;
}

rpc_group::~rpc_group() {
  if (core_ == nullptr) return;
  if (!core_->is_here()) {
    detail::leave_to_parent(std::move(core_));
  } else if (owns_) {
    core_->leave();
  }
}

const detail::core_ptr& rpc_group::core() const {
  if (core_ == nullptr) throw error(errc::invalid_argument, "an rpc_group that has been moved from was used");
  core_->require_member();
  return core_;
}

std::string rpc_group::name() const { return core()->table().name(); }

std::string rpc_group::member() const { return core()->table().name_of(core_->index()); }

std::vector<member_status> rpc_group::states() const {
  const auto& table = core()->table();
  std::vector<member_status> all;
  for (std::size_t index = 0; index < table.shape().members; ++index) {
    if (index >= table.shape().named && !detail::is_kept_actor(table, index)) continue;
    const auto found = detail::member_view::of(table, index);
    all.push_back({.name = table.name_of(index),
                   .state = found.told_as(core_->where()),
                   .pid = found.who.pid,
                   .incarnation = found.incarnation});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

namespace {

std::vector<name_status> names_of(detail::rpc_core& core, detail::named_kind kind) {
  std::vector<name_status> all;
  for (const auto& each : core.names().all()) {
    if (each.kind == kind) all.push_back({.name = each.name, .owner = core.table().name_of(each.member)});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

}  // namespace

std::vector<name_status> rpc_group::services() const { return names_of(*core(), detail::named_kind::service); }

std::vector<name_status> rpc_group::values() const { return names_of(*core(), detail::named_kind::value); }

std::vector<std::string> rpc_group::members() const {
  std::vector<std::string> all;
  for (auto& each : states()) all.push_back(std::move(each.name));
  return all;
}

bool rpc_group::is_member(const std::string& name) const { return core()->table().find(name).has_value(); }

rpc_statistics rpc_group::stats() const { return core()->read_statistics(); }

void rpc_group::trace_to(const std::string& file) const {
  core()->trace().begin(file, core_->table().name(), core_->table().name_of(core_->index()));
}

void rpc_group::end_trace() const { core()->trace().end(); }

void rpc_group::on_change(std::function<void(const rpc_change&)> told) const { core()->tell_changes(std::move(told)); }

void rpc_group::unserve(const std::string& name) const {
  const auto found = core()->names().find(detail::named_kind::service, name);
  if (!found || found->member != core_->index() || !core_->names().erase(*found)) {
    throw error(errc::invalid_argument, text("'", name, "' is not served by '", member(), "', but by ",
                                             found ? core_->table().name_of(found->member) : "no member"));
  }
  core_->services().remove(found->object);
  core_->tell_news();
}

bool rpc_group::is_served(const std::string& name) const {
  return core()->names().find(detail::named_kind::service, name).has_value();
}

void rpc_group::withdraw(const std::string& name) const {
  const auto found = core()->names().find(detail::named_kind::value, name);
  if (!found || found->member != core_->index() || !core_->names().erase(*found)) {
    throw error(errc::invalid_argument, text("'", name, "' is not published by '", member(), "', but by ",
                                             found ? core_->table().name_of(found->member) : "no member"));
  }
  if (const auto value = core_->values().find(found->object)) {
    --value->names;
    core_->look_at(value);
  }
  core_->tell_news();
}

bool rpc_group::is_published(const std::string& name) const {
  return core()->names().find(detail::named_kind::value, name).has_value();
}

// One that has left, which a call of it may have asked for, has nothing to run any more.
void rpc_group::run(const std::stop_token& stop) const {
  if (core_ != nullptr && core_->is_here() && core_->has_left()) return;
  const auto core = this->core();
  const std::stop_callback woken(stop, [&core] { core->crew().wake_runners(); });
  core->serve_here([&] {
    if (stop.stop_requested() || core->has_left()) return true;
    return core->is_alone();
  });
}

void rpc_group::barrier(std::chrono::nanoseconds timeout) const {
  const auto& table = core()->table();
  const auto own = table.member(core_->index()).barriers.fetch_add(1, std::memory_order_seq_cst) + 1;
  core_->tell_news();
  const auto until = core_->end_of_call(timeout);
  std::string missing;
  const auto has_come = [&](std::size_t index) {
    if (table.member(index).barriers.load(std::memory_order_seq_cst) >= own) return true;
    const auto found = detail::member_view::of(table, index);
    if (found.is_lost(core_->where())) throw member_lost(table.name_of(index), "a barrier", "a barrier", false, false);
    return found.state == detail::presence::left;
  };
  const auto all_have_come = [&] {
    missing.clear();
    for (std::size_t index = 0; index < table.shape().named; ++index) {
      if (!has_come(index)) missing += text(missing.empty() ? "'" : ", '", table.name_of(index), "'");
    }
    return missing.empty();
  };
  if (core_->await_news(all_have_come, until)) return;
  throw task_error(error_info(errc::timed_out,
                              text("a barrier of the RPC group '", table.name(), "' waited in vain for ", missing)));
}

void rpc_group::leave() noexcept {
  if (core_ != nullptr && core_->is_here()) core_->leave();
}

}  // namespace muster
