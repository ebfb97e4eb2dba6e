// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/rpc_ticket.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/detail/message_ring.hpp>
#include <muster/rpc/detail/group_table.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/sent_block.hpp>

#include "rpc_keeper.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw error(errc::invalid_argument, text("the RPC group '", name, "' cannot be made: ", why));
}

void require_names(const std::string& group, std::vector<std::string> members) {
  if (members.empty()) refuse(group, "it has no members; name at least one");
  if (members.size() > detail::table_shape::most_members) {
    refuse(group, text("it has ", members.size(), " members; there can be ", detail::table_shape::most_members));
  }
  std::sort(members.begin(), members.end());
  if (const auto twice = std::adjacent_find(members.begin(), members.end()); twice != members.end()) {
    refuse(group, text("two members are called '", *twice, "'; give each a name of its own"));
  }
  for (const auto& each : members) {
    if (each.empty()) refuse(group, "a member's name is empty");
    if (each.size() > detail::member_line::most_name_bytes) {
      refuse(group, text("the member's name '", each, "' has ", each.size(), " bytes; it may have ",
                         detail::member_line::most_name_bytes));
    }
  }
}

detail::table_shape shape_of(const std::string& group, std::size_t members, const rpc_ticket_options& options) {
  constexpr std::size_t most = 1U << 20U;
  const auto require = [&](const char* what, std::size_t given) {
    if (given == 0 || given > most) refuse(group, text(what, " is ", given, "; it can be 1 to ", most));
  };
  require("rpc_ticket_options::inbox", options.inbox);
  require("rpc_ticket_options::calls", options.calls);
  require("rpc_ticket_options::most_names", options.most_names);
  if (options.timeout <= std::chrono::nanoseconds::zero()) {
    refuse(group,
           "rpc_ticket_options::timeout is not positive: calls would be over before they begin; muster::forever "
           "is none");
  }
  if (options.most_actors > detail::table_shape::most_members - members) {
    refuse(group, text("rpc_ticket_options::most_actors is ", options.most_actors, "; with its members there can be ",
                       detail::table_shape::most_members));
  }
  return {.members = members + options.most_actors,
          .named = members,
          .names = options.most_names,
          .calls = options.calls,
          .inbox = options.inbox,
          .timeout = options.timeout};
}

std::string ticket_of(const std::string& group) { return text("an rpc_ticket of the group '", group, '\''); }

}  // namespace

rpc_ticket::rpc_ticket(const std::string& name, const std::vector<std::string>& members,
                       const rpc_ticket_options& options) {
  require_names(name, members);
  const auto shape = shape_of(name, members.size(), options);
  domain_ = domain::of_program();
  if (domain_->self() != participant_id::host) {
    refuse(name,
           "only the program can make a ticket, which looks after the group when others die; make it there, and "
           "pass it to the task as an argument");
  }
  block_ = domain_->blocks().allocate_shared(shape.total_bytes());
  const auto table = detail::group_table::make(block_.bytes(), shape, name);
  for (std::size_t index = 0; index < members.size(); ++index) table.set_name(index, members[index]);
  detail::rpc_keeper::keep(*domain_, block_, table);
}

std::string rpc_ticket::name() const {
  if (!block_) throw error(errc::invalid_argument, "an empty rpc_ticket was used: it is for no group");
  domain_->require_mapped("an rpc_ticket");
  return detail::group_table::attach(block_.bytes()).name();
}

std::vector<std::string> rpc_ticket::members() const {
  static_cast<void>(name());  // throws for an empty one
  const auto table = detail::group_table::attach(block_.bytes());
  std::vector<std::string> all;
  for (std::size_t index = 0; index < table.shape().named; ++index) all.push_back(table.name_of(index));
  std::sort(all.begin(), all.end());
  return all;
}

void rpc_ticket::save(output_archive& archive) const {
  if (!block_) throw error(errc::not_serializable, "an empty rpc_ticket was to be sent: it is for no group");
  archive(name());
  detail::save_block(archive, block_);
}

// By a block's name another group may have come to where this one was.
void rpc_ticket::load(input_archive& archive) {
  std::string group;
  archive(group);
  auto where = domain::of_program();
  auto block = detail::load_block(archive, *where, ticket_of(group));
  if (detail::group_table::attach(block.bytes()).name() != group) detail::throw_block_gone(ticket_of(group));
  block_ = std::move(block);
  domain_ = std::move(where);
}

}  // namespace muster
