// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/handler_room.hpp>
#include <muster/process/crew.hpp>
#include <muster/process/detail/supervisor.hpp>

#include "log_relay.hpp"
#include "loop_call.hpp"
#include "memory_group.hpp"
#include "undertaker.hpp"
#include "warm_watch.hpp"

namespace muster {

/// What lives on the supervisor's loop. Called there.
class supervised {
public:
  /// Completions may have been entered into rings: look, and arm the bell again.
  virtual void bell_rang() noexcept = 0;
  /// Something on the loop failed, and nobody knows what it leaves undone: end what may wait for it.
  virtual void break_down(const std::exception& failure) noexcept = 0;

protected:
  ~supervised() = default;
};

/// The supervisor's loop and what its crews share.
///
/// Thread safety: members marked "loop" belong to the loop's thread; the others are constant after construction.
class supervisor::impl final : private warm_keeper {
public:
  impl(std::shared_ptr<domain> watched, log_sink log);
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;
  ~impl();

  [[nodiscard]] boost::asio::io_context& loop() noexcept { return loop_; }
  [[nodiscard]] const std::shared_ptr<domain>& shared() const noexcept { return domain_; }
  [[nodiscard]] const unique_fd& lifeline() const noexcept { return lifeline_.first; }
  [[nodiscard]] const unique_fd& bell() const noexcept { return bell_; }
  [[nodiscard]] bool is_owner() const noexcept { return ::getpid() == owner_; }

  /// Loop: whose bell it is.
  void add(supervised& crew) { crews_.push_back(&crew); }
  void remove(supervised& crew) { std::erase(crews_, &crew); }
  /// Loop: has a child reaped that is no worker any more, and buried when it has ended.
  /// `group`: its number, if it led a process group, which is reaped too; else 0.
  void have_reaped(unique_fd process, detail::burial buried = {}, pid_t group = 0) {
    undertaker_.take(std::move(process), std::move(buried), group);
  }
  /// Loop: as undertaker::expect and undertaker::make_room.
  void expect_children(std::ptrdiff_t count) noexcept { undertaker_.expect(count); }
  void make_room_for_children() { undertaker_.make_room(); }
  /// Loop: has a control group removed that is nobody's worker's any more, once all who were in it have ended.
  void have_removed(std::unique_ptr<detail::memory_group> group) { undertaker_.take(std::move(group)); }

  /// Loop: objects with handlers of their own, which they give up when they are destroyed; at the latest with this.
  void keep(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }
  void drop(const void* what) {
    std::erase_if(kept_, [what](const auto& each) { return each.get() == what; });
  }

  /// Runs `what` on the loop and waits for it. Requires: called from another thread. Allocates nothing.
  template <class F>
  void run_on_loop(F what) {
    detail::awaited_call<F> call(what);
    ask_for(call);
    call.wait();
  }
  /// Has the loop make that call soon. Allocates nothing.
  void ask_for(detail::loop_call& call) noexcept;
  /// Loop: it is not to be made any more.
  void forget(detail::loop_call& call) noexcept { calls_.remove(call); }

private:
  void listen();
  void run() noexcept;
  void stop() noexcept;
  void begin_watch() noexcept override { ask_for(warm_call_); }

  const pid_t owner_;
  detail::log_relay log_;
  std::shared_ptr<domain> domain_;
  std::pair<unique_fd, unique_fd> lifeline_;
  const closed_in_children lifeline_ends_with_us_{lifeline_.second.get()};
  unique_fd bell_;
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{loop_.get_executor()};
  detail::handler_room<512> room_;  // of the wait for the bell, without which no crew would be served
  detail::loop_calls calls_;
  detail::member_call<impl, &impl::stop> stop_call_{*this};
  boost::asio::posix::stream_descriptor bell_stream_{loop_};  // loop
  detail::undertaker undertaker_{loop_};                      // loop
  detail::warm_watch warm_watch_{loop_, domain_->blocks()};   // loop
  detail::member_call<detail::warm_watch, &detail::warm_watch::begin> warm_call_{warm_watch_};
  std::vector<supervised*> crews_;           // loop
  std::vector<std::shared_ptr<void>> kept_;  // loop
  std::thread thread_;
};

}  // namespace muster
