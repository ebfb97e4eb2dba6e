// SPDX-License-Identifier: BSL-1.0
#include <muster/process/detail/supervisor.hpp>

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>

#include <boost/asio/bind_allocator.hpp>

#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/of_process.hpp>
#include <muster/base/standard_streams.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/system_call.hpp>

#include "lifeline.hpp"
#include "supervisor_impl.hpp"

namespace muster {

namespace {

unique_fd make_bell() {
  auto bell = above_standard_streams(unique_fd(system_call("eventfd", ::eventfd, 0U, EFD_CLOEXEC | EFD_NONBLOCK)));
  known_descriptor::mark(bell.get());  // workers write to it while tasks may close descriptors
  return bell;
}

// Goes with the program's domain (domain::hosted_by_program), which may outlive it: tensors need no supervisor.
struct program_supervisor {
  mutex guard;
  std::weak_ptr<supervisor> current MUSTER_GUARDED_BY(guard);
};

constinit of_process<program_supervisor> program_supervisors;

}  // namespace

supervisor::impl::impl(std::shared_ptr<domain> watched, log_sink log)
    : owner_(::getpid()),
      log_(std::move(log)),
      domain_(std::move(watched)),
      lifeline_(detail::make_lifeline()),
      bell_(make_bell()) {
  bell_stream_.assign(bell_.get());
  try {
    listen();
    thread_ = start_thread([this] { run(); });
  } catch (const std::exception&) {
    static_cast<void>(bell_stream_.release());  // bell_ owns it
    throw;
  }
  ::pthread_setname_np(thread_.native_handle(), "muster");
  domain_->blocks().be_watched_by(this);
}

supervisor::impl::~impl() {
  domain_->blocks().no_longer_watched_by(*this);
  ask_for(stop_call_);
  work_.reset();
  thread_.join();
}

void supervisor::impl::stop() noexcept {
  kept_.clear();
  static_cast<void>(bell_stream_.release());  // ends the wait; bell_ owns it
  undertaker_.stop();
  warm_watch_.stop();
}

void supervisor::impl::ask_for(detail::loop_call& call) noexcept {
  calls_.add(call);
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell_.get(), &one, sizeof one));  // fails only when it has been rung often enough
}

void supervisor::impl::run() noexcept {
  for (;;) {
    try {
      loop_.run();
      return;
    } catch (const std::exception& failure) {
      // Crews deal with what their handlers throw. After anything else nobody knows who waits for what was not done.
      for (auto* each : crews_) each->break_down(failure);
      log_.say(log_level::error, text("the supervisor of process ", ::getpid(), " goes on after: ", failure.what()));
    }
  }
}

void supervisor::impl::listen() {
  bell_stream_.async_wait(
      boost::asio::posix::stream_descriptor::wait_read,
      boost::asio::bind_allocator(detail::room_allocator<std::byte>(room_), [this](boost::system::error_code failure) {
        if (failure) return;  // closed
        std::uint64_t count = 0;
        // A count that stays there does no harm: the next ring is an event of its own.
        static_cast<void>(try_system_call("read", ::read, bell_.get(), &count, sizeof count));
        calls_.run_all();
        for (auto* each : crews_) each->bell_rang();
        if (bell_stream_.is_open()) listen();
      }));
}

supervisor::supervisor(std::shared_ptr<domain> watched, log_sink log) {
  const standard_streams_filled while_asio_makes_its_own;
  impl_ = std::make_unique<impl>(std::move(watched), std::move(log));
}

supervisor::~supervisor() {
  // In a forked child there is no thread to wait for, and nothing here is the child's to undo.
  if (!impl_->is_owner()) static_cast<void>(impl_.release());  // NOLINT(bugprone-unused-return-value): left alone
}

const std::shared_ptr<domain>& supervisor::shared() const noexcept { return impl_->shared(); }

std::shared_ptr<supervisor> supervisor::of_program(const domain_options& options) {
  auto& program = program_supervisors.get();
  auto watched = domain::hosted_by_program(options);
  const scoped_lock lock(program.guard);
  if (auto existing = program.current.lock(); existing && existing->shared() == watched) return existing;
  auto made = std::make_shared<supervisor>(std::move(watched));
  program.current = made;
  return made;
}

}  // namespace muster
