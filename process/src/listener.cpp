// SPDX-License-Identifier: BSL-1.0
#include <muster/process/listener.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "guest.hpp"
#include "listener_impl.hpp"

namespace muster {

listener::impl::impl(supervisor& watcher, const std::filesystem::path& path, listener_options options)
    : hub_(watcher.internals()),
      options_(std::move(options)),
      socket_(std::make_unique<detail::listening_socket>(path)),
      door_(std::make_unique<boost::asio::posix::stream_descriptor>(hub_.loop())),
      rest_timer_(hub_.loop()) {}

namespace {

// An answer is one message of a socket.
constexpr std::size_t most_bytes = std::size_t{64} << 10U;

}  // namespace

// ---- from other threads

void listener::impl::start() {
  hub_.run_on_loop([self = shared_from_this()] {
    self->door_->assign(self->socket_->get());
    self->listen();
  });
}

// After this no handler of the loop is, or will be, inside this object, except those of guests who ask for names.
void listener::impl::stop() {
  hub_.run_on_loop([this] {
    stopped_ = true;
    static_cast<void>(door_->release());
    rest_timer_.cancel();
    socket_.reset();
  });
  log_->end();
}

void listener::impl::add(const std::string& name, detail::offered_value what) {
  constexpr std::size_t longest_name = 1000;
  constexpr std::size_t most_blocks = 1000;
  if (name.size() > longest_name) {
    throw error(errc::invalid_argument,
                text("a name of ", name.size(), " characters cannot be offered; possible are ", longest_name));
  }
  if (what.frame.size() > most_bytes || what.blocks.size() > most_blocks) {
    throw error(errc::invalid_argument,
                text("'", name, "' takes ", what.frame.size(), " bytes and ", what.blocks.size(),
                     " shared blocks to offer; possible are ", most_bytes, " and ", most_blocks,
                     ": put it into shared memory (a tensor, a shared_block), and offer that"));
  }
  for (const auto& each : what.blocks) static_cast<void>(hub_.shared()->blocks().name_of(each));  // or throws
  const scoped_lock lock(mutex_);
  std::swap(offers_[name], what);
}

bool listener::impl::withdraw(const std::string& name) {
  const scoped_lock lock(mutex_);
  return offers_.erase(name) != 0;
}

std::vector<guest_info> listener::impl::guests() const {
  const scoped_lock lock(mutex_);
  return guests_;
}

// ---- on the supervisor's thread

detail::found_value listener::impl::find(const std::string& name, const std::string& type) const {
  const scoped_lock lock(mutex_);
  const auto offer = offers_.find(name);
  if (offer == offers_.end()) {
    throw error(errc::invalid_argument,
                text("nothing is offered under the name '", name, "'; there is ", describe_offers()));
  }
  const auto& what = offer->second;
  if (what.type != type) {
    throw error(errc::invalid_argument, text("'", name, "' is a ", what.type, ", and was asked for as a ", type));
  }
  detail::found_value found{.frame = what.frame, .blocks = {}};
  for (const auto& each : what.blocks) found.blocks.push_back(hub_.shared()->blocks().name_of(each));
  return found;
}

// As many as somebody may read.
std::string listener::impl::describe_offers() const {
  constexpr std::size_t enough = std::size_t{8} << 10U;
  if (offers_.empty()) return "nothing at all";
  std::string all;
  std::size_t count = 0;
  for (const auto& [name, what] : offers_) {
    if (all.size() > enough) return all + text(", and ", offers_.size() - count, " more");
    all += text(count++ == 0 ? "" : ", ", '\'', name, "' (", what.type, ')');
  }
  return all;
}

detail::names_message listener::impl::names(const std::string& from) const {
  const scoped_lock lock(mutex_);
  detail::names_message page;
  std::size_t bytes = 0;
  for (auto each = offers_.lower_bound(from); each != offers_.end(); ++each) {
    const auto& name = each->first;
    bytes += name.size() + sizeof(std::uint64_t);  // its length
    if (bytes > most_bytes) return {.names = std::move(page.names), .has_more = true, .next = name};
    page.names.push_back(name);
  }
  return page;
}

void listener::impl::came(const guest_info& who) {
  const scoped_lock lock(mutex_);
  guests_.push_back(who);
}

void listener::impl::left(const guest_info& who) {
  const scoped_lock lock(mutex_);
  std::erase_if(guests_, [&](const guest_info& each) { return each.participant == who.participant; });
}

void listener::impl::listen() {
  door_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [self = shared_from_this()](boost::system::error_code cancelled) {
                      if (!cancelled && !self->stopped_) self->accept_some();
                    });
}

// Who connects as fast as they are let in does not keep the loop from others: the socket is still ready then.
void listener::impl::accept_some() {
  constexpr int most_at_once = 16;
  try {
    for (int count = 0; count < most_at_once; ++count) {
      auto connection = socket_->accept();
      if (!connection) break;
      admit(std::move(connection));
    }
    listen();
  } catch (const std::exception& failure) {
    log_->say(log_level::error, text("a program that wants to join cannot be let in now: ", failure.what()));
    rest();
  }
}

// Without descriptors the next look would fail as this one did.
void listener::impl::rest() {
  rest_timer_.expires_after(std::chrono::milliseconds(100));
  rest_timer_.async_wait([self = shared_from_this()](boost::system::error_code cancelled) {
    if (!cancelled && !self->stopped_) self->accept_some();
  });
}

// Whether it may join is looked at when it says so: who is refused earlier may not hear why.
void listener::impl::admit(unique_fd connection) {
  const auto who = detail::credentials_of_peer(connection.get());
  try {
    make_room();
    auto process = detail::process_of_peer(connection.get());
    const auto made = std::make_shared<detail::guest>(hub_, weak_from_this(), log_, who.pid, std::move(connection),
                                                      std::move(process));
    made->begin(options_.hello_timeout);
    silent_.push_back(made);
  } catch (const error& failure) {
    log_->say(log_level::warning, text("process ", who.pid, " is turned away: ", failure.what()));
    if (connection) detail::refuse(connection.get(), failure);
  }
}

// Each of them takes two descriptors of this program, which needs them itself. Nobody who has something to say waits
// for those who have not: the first of them goes.
void listener::impl::make_room() {
  constexpr std::size_t most_silent = 64;
  std::erase_if(silent_, [](const auto& each) {
    const auto who = each.lock();
    return !who || !who->is_silent();
  });
  if (silent_.size() < most_silent) return;
  if (const auto first = silent_.front().lock()) first->make_room();
  silent_.pop_front();
}

// ---- the handle

listener::listener(const std::filesystem::path& path, const listener_options& options)
    : listener(supervisor::of_program({}), path, options) {}

listener::listener(std::shared_ptr<supervisor> watcher, const std::filesystem::path& path,
                   const listener_options& options)
    : supervisor_(std::move(watcher)), impl_(std::make_shared<impl>(*supervisor_, path, options)) {
  impl_->start();
}

listener::~listener() {
  if (!impl_->is_owner()) {  // a forked child has neither the supervisor's thread nor a right to the socket's file
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory the child ends here
    static_cast<void>(new std::shared_ptr<impl>(std::move(impl_)));  // never destroyed
    return;
  }
  impl_->stop();
}

void listener::add(const std::string& name, detail::offered_value what) { impl_->add(name, std::move(what)); }
bool listener::withdraw(const std::string& name) { return impl_->withdraw(name); }
std::vector<guest_info> listener::guests() const { return impl_->guests(); }

}  // namespace muster
