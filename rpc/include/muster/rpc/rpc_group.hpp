// SPDX-License-Identifier: BSL-1.0
#pragma once

// Processes that call one another by name.
//
//     muster::rpc_group group(ticket, "sampler 0");
//     float x = group.call("learner", score, image);            // runs there, waits here
//     auto far = group.remote("learner", make_model, 3);        // the result stays there
//     group.serve("score", [&](const tensor& image) { … });     // a service
//     auto weights = group.find<tensor>("weights");             // a value that a member has published

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/rpc/actor_options.hpp>
#include <muster/rpc/detail/actor_start.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/rpc/member_lost.hpp>
#include <muster/rpc/remote_ref.hpp>
#include <muster/rpc/rpc_calls.hpp>
#include <muster/rpc/rpc_change.hpp>
#include <muster/rpc/rpc_options.hpp>
#include <muster/rpc/rpc_statistics.hpp>
#include <muster/rpc/rpc_status.hpp>
#include <muster/rpc/rpc_ticket.hpp>
#include <muster/rpc/service.hpp>
#include <muster/rpc/this_call.hpp>

namespace muster {

/// A member of an RPC group: it calls functions at other members, methods of values that live there, and services by
/// name; and serves theirs, on threads of its own.
///
/// Callables and arguments of calls are those that pools take; services stay in their process, and may capture.
/// **Waiting.** A thread that waits while it serves a call does not count among rpc_options::threads: another one
/// serves further calls meanwhile. So a calls b calls a, however deep, with one thread each.
/// **Deaths.** A thread that waits for a member gets member_lost as soon as the member's death is known. The name can
/// be joined again. Thread safety: distinct objects: safe. Shared objects: safe, except assignment and destruction.
/// Process safety: any member may be killed, or stopped, at any instruction. In a forked child calls throw
/// errc::forked, and the destructor does nothing. Cost: a thread that serves, and, from the first callback on, two
/// more.
class rpc_group {
public:
  /// Joins as that member; when its name was joined before, as soon as the one before is known to be gone.
  /// Throws errc::invalid_argument for an empty ticket, a name that the ticket does not have, and one that a living
  /// member has.
  rpc_group(const rpc_ticket& ticket, const std::string& member, const rpc_options& options = {});
  /// Takes over the membership.
  rpc_group(rpc_group&& other) noexcept;
  /// As destruction, of what this one was.
  rpc_group& operator=(rpc_group&& other) noexcept;
  /// As leave(), unless others have the membership too (this_call::group()).
  ~rpc_group();

  /// Returns the group's name.
  [[nodiscard]] std::string name() const;
  /// Returns the name of this member.
  [[nodiscard]] std::string member() const;
  /// Returns the members' names, sorted.
  [[nodiscard]] std::vector<std::string> members() const;
  /// Returns whether the ticket has that name.
  [[nodiscard]] bool is_member(const std::string& name) const;
  /// Returns each member as it is now, sorted by name.
  [[nodiscard]] std::vector<member_status> states() const;
  /// Returns the services that there are now, sorted by name; and the published values.
  ///@{
  [[nodiscard]] std::vector<name_status> services() const;
  [[nodiscard]] std::vector<name_status> values() const;
  ///@}

  /// Has `told` called with each change in the group from now on (members, services, published values), in their order;
  /// on the member's callback thread, until this member leaves. Of a name that is made and given up again none is
  /// missed unless 64 further ones were given up before this process looks. Throws EAGAIN where no thread can be had.
  /// Cost: a thread, which looks at all names at each change.
  void on_change(std::function<void(const rpc_change&)> told) const;

  /// Returns what this member has done since it joined. Cost: two locks, for a moment.
  [[nodiscard]] rpc_statistics stats() const;
  /// Writes what this member does from now on into `file`, which Perfetto (ui.perfetto.dev) and chrome://tracing open:
  /// a row for each of its threads, a slice for each call that it serves, and an arrow from where that was made. The
  /// file is appended to: members that are given the same one show what they do together, each as a process of its own.
  /// It is to be a new one at first; it stays without a closing bracket, which the format does not ask for. Only one at
  /// a time: a further one ends the one before.
  ///
  /// Throws muster::error when the file cannot be written, with its name and the cause, and EAGAIN when no thread can
  /// be had for that; there is no trace then. Thread safety: safe. Cost: some 500 bytes a call, written on a thread of
  /// its own at most 50 ms later; a million events wait for that at most.
  void trace_to(const std::string& file) const;
  /// Ends the trace: all is written when this returns. Nothing, if there is none. Throws muster::error when not all
  /// could be. (Leaving logs that instead.)
  void end_trace() const;

  /// Calls `f(args...)` at that member, and waits for the result; of a function that returns a future, for what that
  /// comes to. A member that has not joined yet is waited for.
  /// Throws what `f` throws, as future::get() does; member_lost when the member dies or leaves, at once if it has;
  /// errc::timed_out; errc::invalid_argument for a name that is no member's.
  /// Unblocked by: the end of the call, its deadline, the member's death, leave().
  template <class F, class... Args>
  auto call(const std::string& member, F f, Args&&... args) const {
    return with({}).call(member, std::move(f), std::forward<Args>(args)...);
  }
  /// The same, without waiting for the result: returns a future. It waits for room in the member's inbox. Futures may
  /// be arguments: then it is sent when they are there.
  template <class F, class... Args>
  [[nodiscard]] auto call_async(const std::string& member, F f, Args&&... args) const {
    return with({}).call_async(member, std::move(f), std::forward<Args>(args)...);
  }
  /// Calls `f(args...)` there; what it returns stays there. Returns a remote_ref to it at once; calls by that throw
  /// what making it threw.
  template <class F, class... Args>
  [[nodiscard]] auto remote(const std::string& member, F f, Args&&... args) const {
    return with({}).remote(member, std::move(f), std::forward<Args>(args)...);
  }
  /// Calls with options.
  [[nodiscard]] rpc_calls with(const rpc_call_options& how) const { return rpc_calls(core(), how); }

  /// Offers a service under that name, until unserve(), leave() or this process's end. `f` stays in this process, and
  /// may capture; it runs on the serving threads. One that returns a future is answered when that is ready; neither a
  /// thread nor its line waits for that. Throws errc::invalid_argument when any member serves that name.
  template <class F>
    requires(!std::is_function_v<F>)
  void serve(const std::string& name, F f, const service_options& how = {}) const {
    static_assert(detail::has_one_signature<F>,
                  "muster: it is not clear how this service is called, since its operator() is a template or has "
                  "overloads: say so, as serve<float(const tensor&)>(name, f)");
    serve<typename detail::signature_of<F>::type>(name, std::move(f), how);
  }
  /// The same, of a callable that can be called in several ways: `serve<float(const tensor&)>("score", f)`.
  template <class Signature, class F>
    requires std::is_function_v<Signature>
  void serve(const std::string& name, F f, const service_options& how = {}) const {
    using form = detail::service_form<Signature>;
    form::check();
    static_assert(form::template fits<F>,
                  "muster: the service cannot be called with these arguments. It gets copies, as rvalues: take them by "
                  "value, by const& or by &&");
    detail::serve(core(), name, form::mark(), how, form::runner(std::move(f)));
  }
  /// Ends a service. Calls of it that have begun go on. Throws errc::invalid_argument unless this member serves it.
  void unserve(const std::string& name) const;
  /// Returns whether any member serves that name now.
  [[nodiscard]] bool is_served(const std::string& name) const;
  /// Looks a service up; waits until it is served, at most as long as the ticket's timeout. Throws errc::timed_out;
  /// errc::invalid_argument where its arguments or its result are of other types.
  template <class Signature>
  [[nodiscard]] muster::service<Signature> service(const std::string& name) const {
    detail::service_form<Signature>::check();
    return muster::service<Signature>(
        detail::find_service(core(), name, detail::service_form<Signature>::mark(), true));
  }

  /// Calls a service by name, once: `group.call_service<float>("score", image)`. Its arguments are of the types that
  /// are given. Throws errc::invalid_argument at once where none serves that name, or its types are others; and as
  /// service.
  template <class R, class... Args>
  R call_service(const std::string& name, const Args&... args) const {
    return with({}).template call_service<R>(name, args...);
  }
  /// The same, without waiting for the result.
  template <class R, class... Args>
  [[nodiscard]] future<R> call_service_async(const std::string& name, const Args&... args) const {
    return with({}).template call_service_async<R>(name, args...);
  }
  /// The same; what the service returns stays with its member.
  template <class R, class... Args>
  [[nodiscard]] remote_ref<R> remote_service(const std::string& name, const Args&... args) const {
    return with({}).template remote_service<R>(name, args...);
  }

  /// Starts an actor: a process of its own that joins the group under that name, makes a `T` of the arguments, and
  /// serves calls of it by the reference that is returned. The name is a new one, or one of the ticket's that is free.
  /// The program starts the process, whichever member asks: it has to have a member that serves. `T` need not be
  /// movable. The process ends when nothing refers to the actor any more, or that member of the program's leaves.
  ///
  /// When the process dies it is started anew, as often as actor_options::restarts says: references go on, further
  /// calls wait for it, and the state is the constructor's again. Throws what the constructor throws;
  /// errc::invalid_argument for a name that a living member has; errc::out_of_memory (rpc_ticket_options::most_actors);
  /// and as process.
  template <class T, class... Args>
  [[nodiscard]] remote_ref<T> start(const std::string& name, const actor_options& how = {}, const Args&... args) const {
    static_assert(
        std::is_constructible_v<T, const sent_as<Args>&...>,
        "muster: the actor cannot be made of these arguments. Its constructor gets copies of them, by const&");
    const auto host = detail::actor_host_of(core());
    if (host.empty()) {
      return remote_ref<T>(detail::start_actor_here(
          core_, name, how, detail::launcher_of<T, sent_as<Args>...>(static_cast<const sent_as<Args>&>(args)...)));
    }
    return call(host, &detail::start_actor<remote_ref<T>, T, sent_as<Args>...>, name, how, args...);
  }

  /// Keeps a value here, for references to it.
  template <class T>
  [[nodiscard]] remote_ref<T> keep(T value) const {
    return remote_ref<T>(detail::keep_value(core(), std::make_shared<T>(std::move(value))));
  }
  /// Keeps a value here, under a name, until withdraw(), leave() or this process's end. Throws errc::invalid_argument
  /// when any member has published that name.
  template <class T>
  remote_ref<T> publish(const std::string& name, T value) const {
    auto made = keep(std::move(value));
    detail::publish_value(core(), name, detail::mark_of<T>(), made.handle_);
    return made;
  }
  /// The same of what a reference refers to, which this member must own.
  template <class T>
  remote_ref<T> publish(const std::string& name, const remote_ref<T>& which) const {
    detail::publish_value(core(), name, detail::mark_of<T>(), which.handle_);
    return which;
  }
  /// Ends the name, not the value. Throws errc::invalid_argument unless this member has published it.
  void withdraw(const std::string& name) const;
  /// Returns whether any member has published that name.
  [[nodiscard]] bool is_published(const std::string& name) const;
  /// Returns a reference to what was published. Throws errc::invalid_argument where nothing is, or it is of another
  /// type.
  template <class T>
  [[nodiscard]] remote_ref<T> find(const std::string& name) const {
    return remote_ref<T>(detail::find_value(core(), name, detail::mark_of<T>(), false));
  }
  /// The same, but waits until it is published, at most as long as the ticket's timeout.
  template <class T>
  [[nodiscard]] remote_ref<T> wait_for(const std::string& name) const {
    return remote_ref<T>(detail::find_value(core(), name, detail::mark_of<T>(), true));
  }

  /// Lets the calling thread serve too, until `stop` says so, this member leaves, or no other member is there any more;
  /// of one that has left, as a call of it may have asked for, it returns at once.
  /// Members that do nothing else keep one another: the one that has called them last asks each to leave.
  void run(const std::stop_token& stop = {}) const;
  /// Waits until all members of the ticket that have not left have come here as often. Throws member_lost when one is
  /// dead, errc::timed_out with those that have not come.
  void barrier(std::chrono::nanoseconds timeout = {}) const;
  /// Leaves: names and values of this member go, calls that have not begun here fail with member_lost at their callers,
  /// begun ones are answered; own calls end in errc::cancelled. Again: nothing.
  void leave() noexcept;

  /// For the library: what it is made of.
  [[nodiscard]] const detail::core_ptr& core() const;

private:
  friend rpc_group this_call::group();
  explicit rpc_group(detail::core_ptr core, bool owns) noexcept;

  detail::core_ptr core_;
  bool owns_ = true;
};

}  // namespace muster
