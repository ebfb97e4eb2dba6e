// SPDX-License-Identifier: BSL-1.0
#pragma once

// How an actor comes to be: a member asks the program's member (start_actor), which starts a process (run_actor) that
// joins the group and serves the object.
//
// Thread safety: functions without state; safe.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <muster/pool/process.hpp>
#include <muster/rpc/actor_options.hpp>
#include <muster/rpc/detail/remote_handle.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/rpc/rpc_ticket.hpp>

namespace muster::detail {

/// As whom an actor's process joins.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct actor_role {
  std::string name;
  std::uint64_t object = 0;  ///< its number
  std::size_t threads = 1;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, object, threads);
  }
};

/// Joins, and serves what `make` makes until it is told to leave.
void serve_actor(const rpc_ticket& ticket, const actor_role& role, const std::function<std::shared_ptr<void>()>& make);

/// The function of an actor's process.
template <class T, class... Args>
void run_actor(const rpc_ticket& ticket, const actor_role& role, const Args&... args) {
  serve_actor(ticket, role, [&] { return std::shared_ptr<void>(std::make_shared<T>(args...)); });
}

/// Starts the process.
using actor_launcher =
    std::function<process(const process_options& how, const rpc_ticket& ticket, const actor_role& role)>;

/// At the program's member: starts an actor, and returns when it has joined. Throws what its constructor throws,
/// errc::invalid_argument for a name that is taken, errc::out_of_memory when there are as many actors as there can be.
[[nodiscard]] remote_handle start_actor_here(const core_ptr& core, const std::string& name, const actor_options& how,
                                             actor_launcher launcher);
/// The member that this thread serves a call of.
[[nodiscard]] core_ptr serving_core();
/// Which of the program's members starts actors: its name; empty when that is the asking one itself. Throws
/// errc::invalid_argument where the program has no member that serves.
[[nodiscard]] std::string actor_host_of(const core_ptr& core);

template <class T, class... Args>
[[nodiscard]] actor_launcher launcher_of(const Args&... args) {
  return [args...](const process_options& how, const rpc_ticket& ticket, const actor_role& role) {
    return process(how, &run_actor<T, Args...>, ticket, role, args...);
  };
}

/// What a member asks the program's for. Wrapped, since the type of the reference is not complete here.
template <class Ref, class T, class... Args>
[[nodiscard]] Ref start_actor(const std::string& name, const actor_options& how, const Args&... args) {
  return Ref(start_actor_here(serving_core(), name, how, launcher_of<T, Args...>(args...)));
}

}  // namespace muster::detail
