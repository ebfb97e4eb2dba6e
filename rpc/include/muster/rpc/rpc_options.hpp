// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <muster/base/detail/duration.hpp>
#include <muster/base/log.hpp>
#include <muster/pool/task_options.hpp>
#include <muster/serialize/transfer.hpp>

namespace muster {

/// As a deadline of a call: none, however long it takes.
inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

/// How an RPC group is made. They lie in its ticket, so that its members cannot differ about them.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct rpc_ticket_options {
  /// How long a call may take where it does not say so itself (rpc_call_options::deadline).
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// How many requests may wait for a member before its callers wait for room. They take 256 bytes each.
  std::size_t inbox = 1024;
  /// How many calls a member may have under way at once; further ones wait for one of them to end.
  std::size_t calls = 1024;
  /// How many services and values may have names at once.
  std::size_t most_names = 1024;
  /// How many actors with names of their own there may be at once (rpc_group::start).
  std::size_t most_actors = 64;
};

/// How a member takes part.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct rpc_options {
  /// How many requests it serves at a time. 0: it only calls, and calls to it throw errc::invalid_argument, but while
  /// it is in rpc_group::run().
  std::size_t threads = 1;
  /// Whether it is going to serve in rpc_group::run(), for which calls wait, if it has no threads for that.
  bool runs = false;
  /// Receives what callbacks throw.
  log_sink log = log_to_stderr;
};

/// How one call is to be treated: `group.with({.deadline = 1s}).call("learner", f, x)`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct rpc_call_options {
  /// How long it may take, from now on, with all its attempts. What has not begun by then never begins; what runs is
  /// asked to stop (this_call::stop_requested()), and its result is dropped. No deadline kills a member. 0: the
  /// ticket's timeout; muster::forever: none. A call that is made while serving another has at most what its caller has
  /// left.
  std::chrono::nanoseconds deadline{};
  /// Whether tensors among arguments and in the result go as the same memory or as copies; transfer::move is as
  /// transfer::reference.
  muster::transfer transfer = muster::transfer::reference;
  /// How often the call is made again after it has failed for one of the reasons in `retry_on`. 0, the default, because
  /// only you know whether running it twice does harm. It goes to the member that has the name then, and a service to
  /// the member that serves it then, which is waited for; a remote value that is lost stays lost. An attempt that had
  /// not begun when its member died or left does not count. Not once it was asked to stop. Cost: its arguments are
  /// kept, encoded, until it has ended. Not of remote(), which throws errc::invalid_argument: its reference names the
  /// one that owns the value.
  unsigned retries = 0;
  /// For which reasons: `retry::death() | retry::exceptions<network_error>()`; retry::death() is that the member was
  /// lost. There is no time of one attempt: retry::timeout() throws errc::invalid_argument.
  retry_reasons retry_on = retry::death();
  /// How long it waits before the second attempt, and twice as long before each further one, up to a minute; a quarter
  /// more or less by chance. 0: it is tried again at once. Less than 0 throws errc::invalid_argument.
  std::chrono::nanoseconds retry_delay{};
  /// Whether a member that has died or left is waited for, until its name is joined again: of a function that is called
  /// at a member. Else such a call throws member_lost at once. Where there are retries it is waited for anyway.
  bool awaits_rejoin = false;
  /// Shown in the errors of the call.
  task_label label{};
  /// Of a remote value: not in the order of its calls, but at once, maybe beside others.
  bool concurrent = false;
};
static_assert(std::is_trivially_copyable_v<rpc_call_options>);

/// How a service is run.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct service_options {
  /// One call at a time, in the order in which they come. Else as many at once as the member has threads.
  bool serial = false;
  /// Services of one member with the same line run one at a time together, in the order in which their calls come.
  /// Empty: as `serial` says.
  std::string line{};
};

}  // namespace muster
