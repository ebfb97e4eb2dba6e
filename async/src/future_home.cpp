// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/future_home.hpp>

#include <memory>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/async/detail/waiting_calls.hpp>
#include <muster/base/detail/fork_count.hpp>

namespace muster::detail {

struct future_home::parts {
  parts(std::shared_ptr<callback_executor> for_steps, std::shared_ptr<callback_executor> for_callbacks,
        const char* what_it_is = "a pool")
      : what(what_it_is), steps(std::move(for_steps)), callbacks(std::move(for_callbacks)) {}

  const process_mark made_in;
  const char* const what;
  const std::shared_ptr<callback_executor> steps;
  const std::shared_ptr<callback_executor> callbacks;
  waiting_calls waiting;
};

future_home::future_home(const log_sink& log, boost::asio::io_context* loop)
    : parts_(std::make_unique<parts>(std::make_shared<callback_executor>(log),
                                     loop != nullptr ? std::make_shared<callback_executor>(log, *loop)
                                                     : std::make_shared<callback_executor>(log))) {}

future_home::future_home(const log_sink& log, const char* what)
    : parts_(std::make_unique<parts>(std::make_shared<callback_executor>(log), std::make_shared<callback_executor>(log),
                                     what)) {}

future_home::future_home(const std::shared_ptr<callback_executor>& everything)
    : parts_(std::make_unique<parts>(everything, everything)) {}

future_home::~future_home() = default;

callback_executor& future_home::steps() const noexcept { return *parts_->steps; }

const std::shared_ptr<callback_executor>& future_home::shared_steps() const noexcept { return parts_->steps; }

callback_executor& future_home::callbacks() const noexcept { return *parts_->callbacks; }

const std::shared_ptr<callback_executor>& future_home::shared_callbacks() const noexcept { return parts_->callbacks; }

waiting_calls& future_home::waiting() const noexcept { return parts_->waiting; }

bool future_home::is_here() const noexcept { return parts_->made_in.is_here(); }

void future_home::require_here() const { parts_->made_in.require_here(parts_->what); }

void future_home::stop_callbacks() const {
  parts_->callbacks->stop();
  parts_->steps->stop();
}

}  // namespace muster::detail
