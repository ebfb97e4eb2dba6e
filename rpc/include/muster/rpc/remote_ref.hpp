// SPDX-License-Identifier: BSL-1.0
#pragma once

// A value that lives in another member of an RPC group.
//
//     muster::remote_ref<model> far = group.remote("learner", make_model, 3);
//     float y = far.call(&model::score, image);
//     model copy = far.to_here();

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <muster/async/detail/dependent_call.hpp>
#include <muster/async/future.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/rpc/member_lost.hpp>
#include <muster/rpc/rpc_options.hpp>

namespace muster {

class rpc_group;
template <class T>
class remote_ref;

/// A remote_ref with options for its calls.
///
/// Thread safety: as remote_ref.
template <class T>
class remote_calls {
public:
  /// As remote_ref::call.
  template <class F, class... Args>
  auto call(F f, Args&&... args) const {
    return call_async(std::move(f), std::forward<Args>(args)...).get();
  }
  /// As remote_ref::call_async.
  template <class F, class... Args>
  [[nodiscard]] auto call_async(F f, Args&&... args) const {
    detail::check_method<T, F, sent_as<Args>...>();
    using method = detail::rpc_method<T, F, sent_as<Args>...>;
    return detail::future_of_call<typename method::result>(detail::send_call<F, sent_as<Args>...>(
        detail::rpc_sending::to_value(handle_, how_), &method::run, f, std::forward<Args>(args)...));
  }
  /// The same, with futures among the arguments: it is sent when all of them are there, and fails as they do.
  template <class F, class... Args>
    requires(detail::is_future<Args> || ...)
  [[nodiscard]] auto call_async(F f, Args&&... args) const {
    return detail::submit_when_ready(
        detail::home_of(handle_),
        [calls = *this, f = std::move(f)]<class... Values>(Values&&... values) {
          return calls.call_async(f, std::forward<Values>(values)...);
        },
        std::forward<Args>(args)...);
  }
  /// As remote_ref::to_here.
  [[nodiscard]] T to_here() const { return to_here_async().get(); }
  /// The same, without waiting.
  [[nodiscard]] future<T> to_here_async() const {
    detail::require_transportable<T>();
    auto sending = detail::rpc_sending::to_value(handle_, how_);
    static_cast<void>(sending.make_room(0, 0));
    const auto copy = sending.functions().encode(&detail::rpc_copy<T>::run);
    return detail::future_of_call<T>(sending.send(static_cast<std::uint64_t>(copy)));
  }

private:
  friend class remote_ref<T>;
  remote_calls(detail::remote_handle handle, const rpc_call_options& how) : handle_(std::move(handle)), how_(how) {}

  detail::remote_handle handle_;
  rpc_call_options how_;
};

/// Refers to a value that a member of an RPC group owns. Copies refer to the same; it can be an argument and a result
/// of the group's calls, and part of them, and outlives the call and the member that made it. The value goes when the
/// last reference does, in whatever process, also when that is killed; on its owner's serving threads, behind its
/// calls. References in a circle stay until a member of the circle leaves.
///
/// Calls of one value run one at a time, in the order in which they came to its owner.
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
/// Process safety: belongs to the member that it has come to; killed owners and holders leave nothing behind.
/// Cost: 64 bytes of shared memory for each value, and 64 for each process that has references to it, of which a domain
/// has as many as it has blocks (domain_options::max_blocks, 2^20 by default): then errc::out_of_memory.
template <class T>
class remote_ref {
public:
  using value_type = T;

  /// Refers to nothing.
  remote_ref() noexcept = default;
  /// For the group.
  explicit remote_ref(detail::remote_handle handle) noexcept : handle_(std::move(handle)) {}

  /// Whether it refers to something; all below throw errc::invalid_argument where it does not.
  [[nodiscard]] bool valid() const noexcept { return handle_.valid(); }
  /// Returns the name of the member that has the value.
  [[nodiscard]] std::string owner() const { return handle_.owner(); }
  /// Returns how often that member's name has been joined: of an actor it grows with each start of its process.
  [[nodiscard]] std::uint32_t incarnation() const { return handle_.incarnation(); }
  /// Returns whether that is the member whose reference this is.
  [[nodiscard]] bool is_local() const { return handle_.is_local(); }
  /// Returns the value itself. Throws errc::invalid_argument where another member has it. Calls of it may run
  /// meanwhile, on the owner's serving threads.
  [[nodiscard]] T& local() const { return *static_cast<T*>(handle_.local()); }
  /// Returns whether the owner has answered that the value is there. Throws what making it threw.
  [[nodiscard]] bool confirmed() const { return handle_.is_confirmed(); }

  /// Calls a function of the value, where it is: a pointer to a member, or what can be called with T& and the arguments
  /// (callables and arguments as pools take them). Waits for its result.
  /// Throws what it throws, as future::get() does; what making the value threw; member_lost; errc::timed_out.
  /// Unblocked by: its end, its deadline, the owner's death.
  template <class F, class... Args>
  auto call(F f, Args&&... args) const {
    return with({}).call(std::move(f), std::forward<Args>(args)...);
  }
  /// The same, without waiting for it: returns a future.
  template <class F, class... Args>
  [[nodiscard]] auto call_async(F f, Args&&... args) const {
    return with({}).call_async(std::move(f), std::forward<Args>(args)...);
  }
  /// Returns a copy of the value, tensors included, made between two of its calls. With transfer::reference, which must
  /// be said, the tensors are the value's own.
  [[nodiscard]] T to_here() const { return with({.transfer = transfer::copy}).to_here(); }

  /// Calls with options.
  [[nodiscard]] remote_calls<T> with(const rpc_call_options& how) const { return remote_calls<T>(handle_, how); }

  /// Whether both refer to the same value, or both to none.
  friend bool operator==(const remote_ref& a, const remote_ref& b) noexcept { return a.handle_.is_same(b.handle_); }

  /// For the library: what it is made of.
  [[nodiscard]] const detail::remote_handle& handle() const noexcept { return handle_; }

  /// For cereal: sends the reference. Throws errc::not_serializable where only copies of bytes can go.
  void save(output_archive& out) const { handle_.save(out); }
  /// Throws errc::invalid_argument outside of calls of the group that the value's owner is a member of.
  void load(input_archive& in) { handle_.load(in); }

private:
  friend class rpc_group;

  detail::remote_handle handle_;
};

}  // namespace muster
