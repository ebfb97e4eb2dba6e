// SPDX-License-Identifier: BSL-1.0
#include <muster/process/crew.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <muster/base/pidfd.hpp>
#include <muster/base/text.hpp>

#include "crew_impl.hpp"

namespace muster {

// ---- from other threads

void crew::impl::start() {
  hub().run_on_loop([self = shared_from_this()] {
    self->recovery_ = self->shared().recoveries().add(recovery_stage::boards,
                                                      [raw = self.get()](participant_id dead) { raw->recover(dead); });
    self->hub().add(*self);
    self->hub().expect_children(self->most_children());
    self->expects_children_ = true;
    self->bell_rang();  // arms it
    for (std::size_t index = 0; index < self->size_; ++index) {
      auto& who = *self->workers_[index];
      if (!self->giving_up_) self->perform(who, who.life.start());
    }
  });
}

// After this nobody is, or will be, inside this crew, its client or its sink.
void crew::impl::leave() {
  hub().run_on_loop([this] {
    left_ = true;
    hub().remove(*this);
    hub().forget(stop_call_);
    hub().forget(watch_call_);
    hub().forget(time_call_);
    hub().forget(return_call_);
    recovery_ = {};
    audit_timer_.cancel();
    time_timer_.cancel();
    for (auto& each : workers_) disconnect(*each);
    for (auto& each : successors_) {
      if (each) disconnect(*each);
    }
    if (std::exchange(expects_children_, false)) hub().expect_children(-most_children());
  });
  log_.end();
}

// One that did not even die of SIGKILL is watched no longer; it is reaped all the same.
void crew::impl::disconnect(worker& who) {
  who.start_timer.cancel();
  who.death_timer.cancel();
  who.age_timer.cancel();
  who.clerk.reset();
  who.control.reset();
  for (auto& stream : who.streams) stream.pipe.reset();
  if (who.group) remove(std::move(who.group));
  if (!who.process) return;
  unique_fd process(who.process->release());
  who.process.reset();
  // What it has is given back when it is dead, though its crew may have gone by then.
  const auto where = who.pid != 0 ? supervisor_.shared() : nullptr;
  hub().have_reaped(std::move(process), {.where = where, .participant = who.participant});
}

// What the worker had started may take a while to die. Without memory to remember the group, a later program removes
// it.
void crew::impl::remove(std::unique_ptr<detail::memory_group> group) noexcept {
  try {
    hub().have_removed(std::move(group));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

bool crew::impl::all_are_greeted() const {
  const auto end = greeted_.begin() + static_cast<std::ptrdiff_t>(shown_size_);
  return std::find(greeted_.begin(), end, false) == end;
}

void crew::impl::wait_until_greeted() {
  scoped_lock lock(mutex_);
  while (!all_are_greeted() && !broken_ && !lack_) changed_.wait(lock);
  if (all_are_greeted() && !broken_) return;
  const auto& why = broken_ ? *broken_ : *lack_;
  throw error(why.code(), text("the ", options_.kind, " '", options_.name, "' cannot be started: ", why.describe()));
}

void crew::impl::begin_stop(worker_order how) noexcept {
  stop_order_.store(how, std::memory_order_release);
  hub().ask_for(stop_call_);
}

void crew::impl::stop_as_ordered() noexcept {
  guard([this] {
    order_ = stop_order_.load(std::memory_order_acquire);
    give_orders();
    stop_all();
    const auto stopped = error_info::described(errc::cancelled, [] {
      return std::string("the workers are told to leave: their number does not change any more");
    });
    tell_size(&stopped);
    watch();  // until they have heard it
  });
}

void crew::impl::kill_at_last() noexcept {
  client_.crew_will_be_killed();
  kill_all();
}

void crew::impl::kill_now() {
  hub().run_on_loop([this] { kill_at_last(); });
}

bool crew::impl::wait_until_gone(deadline until) {
  scoped_lock lock(mutex_);
  const auto all = [this]() MUSTER_REQUIRES(mutex_) {
    return standing_by_ == 0 &&
           std::all_of(infos_.begin(), infos_.end(), [](const worker_info& each) { return each.pid == 0; });
  };
  while (!all()) {
    if (!changed_.wait_until(lock, until)) return all();
  }
  return true;
}

bool crew::impl::send(std::size_t worker, int signal) {
  bool sent = false;
  hub().run_on_loop([&] {
    auto& who = *workers_.at(worker);
    sent = who.process && send_signal(who.process->native_handle(), signal);
  });
  return sent;
}

std::vector<worker_info> crew::impl::workers() const {
  const scoped_lock lock(mutex_);
  std::vector<worker_info> found;
  for (const auto& each : infos_) {
    if (each.index < shown_size_ || each.pid != 0) found.push_back(each);
  }
  return found;
}

crew_statistics crew::impl::read_statistics() const {
  const scoped_lock lock(mutex_);
  return statistics_;
}

std::vector<crew_member_statistics> crew::impl::read_member_statistics() const {
  const scoped_lock lock(mutex_);
  const auto now = clock::now();
  std::vector<crew_member_statistics> found;
  for (std::size_t index = 0; index < board_.used(); ++index) {
    const auto& each = members_[index];
    found.push_back({.now = infos_[index],
                     .processes = each.processes,
                     .start_up = each.start_up,
                     .served = each.served + (each.ready ? now - *each.ready : clock::duration(0))});
  }
  return found;
}

// ---- on the supervisor's thread

void crew::impl::perform(worker& who, worker_lifecycle::action what) {
  switch (what) {
    case worker_lifecycle::action::none: return;
    case worker_lifecycle::action::spawn: return spawn(who);
    case worker_lifecycle::action::kill: kill(who); return;
    case worker_lifecycle::action::give_up: return give_up(with_name(who.index, who.life.failure()));
  }
}

void crew::impl::listen(worker& who) {
  who.control->async_wait(boost::asio::posix::stream_descriptor::wait_read, handler(who, [this, &who] {
                            if (hear_next(who)) listen(who);
                          }));
}

// Whether there is more to come. A worker that says what cannot be understood or answered is to go.
bool crew::impl::hear_next(worker& who) {
  try {
    auto heard = detail::receive_message(who.control->native_handle(), detail::wait_mode::poll);
    if (heard && heard->kind == detail::message_kind::closed) {
      end_deserter(who);
      return false;
    }
    if (heard) hear(who, *heard);
    return true;
  } catch (const std::exception& failure) {
    fail_handshake(who, failure);
    return false;
  }
}

void crew::impl::hear(worker& who, detail::message& heard) {
  if (who.clerk && who.clerk->hear(heard)) return;
  switch (heard.kind) {
    case detail::message_kind::hello: answer_hello(who, heard); break;
    case detail::message_kind::ready: be_ready(who); break;
    case detail::message_kind::failure: perform(who, who.life.failed(heard.read<error_info>())); break;
    case detail::message_kind::crash: who.crash = heard.body; break;
    case detail::message_kind::terminated: who.terminated = heard.read<std::string>(); break;
    case detail::message_kind::memory:
      who.too_big = true;
      succeed(who);
      break;
    case detail::message_kind::soon: succeed(who); break;
    case detail::message_kind::unfit:
      note_unfit(who, heard.read<std::string>());
      if (!who.stands_by) retire(who);
      break;
    default: throw error(errc::corrupted, "a worker sent a message that only parents send");
  }
  publish(who);
}

void crew::impl::answer_hello(worker& who, const detail::message& heard) {
  const auto hello = heard.read<detail::hello_message>();
  const auto mine = loaded_modules();
  auto reason = hello.protocol == detail::protocol_version
                    ? find_mismatch(mine, hello.modules)
                    : text("it speaks protocol ", hello.protocol, " instead of ", detail::protocol_version);
  if (!reason.empty()) {
    refuse(who, text(reason, "\nmodules of the parent:\n", describe(mine), "modules of the worker:\n",
                     describe(hello.modules), "rebuild the program and its libraries together, and restart it"));
    return;
  }
  const detail::welcome_message welcome{.crew_name = options_.name,
                                        .index = who.index,
                                        .incarnation = who.incarnation,
                                        .participant = static_cast<std::uint16_t>(who.participant),
                                        .entry = static_cast<std::uint64_t>(options_.entry),
                                        .captured = options_.capture != output_capture::none,
                                        .reports_crashes = options_.crash_reports,
                                        .stands_by = who.stands_by,
                                        .leaves_signals = options_.leaves_signals,
                                        .left_signals = program_state_.left_signals(),
                                        .limits = program_state_.limits(),
                                        .device = text(assignment_of(who.index).device),
                                        .payload = options_.payload};
  const auto& files = shared().files();
  const std::array descriptors = {files.control.get(),    files.arena.get(),  board_.file().get(),
                                  hub().lifeline().get(), hub().bell().get(), options_.loop_bell};
  detail::send_message(who.control->native_handle(), detail::message_kind::welcome, detail::body_of(welcome),
                       std::span(descriptors).first(options_.loop_bell != -1 ? 6 : 5));
  who.clerk = std::make_shared<detail::descriptor_clerk>(shared(), *who.control, who.participant);
  if (std::exchange(who.follows_unwelcome, false)) end_lack(who);
  perform(who, who.life.greeted());
  bool all = false;
  {
    const scoped_lock lock(mutex_);
    greeted_[who.index] = true;
    all = all_are_greeted();
    changed_.notify_all();
  }
  if (all) client_.crew_greeted();
  check_size();
}

void crew::impl::refuse(worker& who, const std::string& reason) {
  const error_info why(errc::module_mismatch, text("the worker is not the same build as its parent: ", reason));
  detail::send_message(who.control->native_handle(), detail::message_kind::refusal, detail::body_of(why));
  perform(who, who.life.failed(why));
}

void crew::impl::give_up(const error_info& why) {
  if (giving_up_) return check_gone();  // who is lost may be the last
  giving_up_ = why;
  log(log_level::error, text("the ", options_.kind, " '", options_.name, "' is broken: ", why.describe()));
  stop_all();
  kill_all();
  tell_size(&why);
  check_gone();
}

// After a handler that threw. What it was about may never be heard of again, so everything that is pending ends here.
void crew::impl::break_down(const std::exception& failure) noexcept {
  try {
    give_up(error_info(errc::pool_broken, text("the supervisor failed: ", failure.what())));
  } catch (const std::exception&) {  // not even memory for words
    giving_up_.emplace();
    for (auto& each : workers_) static_cast<void>(each->life.stop());
    kill_all();
    check_gone();
  }
}

void crew::impl::stop_all() {
  for (auto& each : workers_) perform(*each, each->life.stop());
  dismiss_all();
}

void crew::impl::publish(const worker& who) {
  if (who.stands_by) return;
  const scoped_lock lock(mutex_);
  const auto pid = who.lost ? 0 : who.pid;  // nobody waits for one that is lost
  auto& info = infos_[who.index];
  info.pid = pid;
  info.incarnation = who.incarnation;
  info.state = who.life.now();
  changed_.notify_all();
}

void crew::impl::note_ready(const worker& who) {
  const scoped_lock lock(mutex_);
  auto& member = members_[who.index];
  if (member.ready) return;
  member.ready = clock::now();
  member.start_up = who.ready.value_or(*member.ready) - who.started;
}

void crew::impl::count(const worker& who, std::uint64_t crew_statistics::* what) {
  ++(statistics_.*what);
  ++(members_[who.index].processes.*what);
}

void crew::impl::check_gone() {
  if (!giving_up_ || !all_are_gone()) return;
  client_.crew_broken(*giving_up_);
  const scoped_lock lock(mutex_);
  if (!broken_) broken_ = giving_up_;
  changed_.notify_all();
}

// ---- the handle

crew::crew(std::shared_ptr<supervisor> watcher, board& tasks, crew_options options, crew_client& client)
    : supervisor_(std::move(watcher)) {
  if (!options.memory_group.empty())
    detail::memory_group(options.memory_group, options.memory_limit);  // it is possible
  impl_ = std::make_shared<impl>(*supervisor_, tasks, std::move(options), client);
  try {
    impl_->start();
  } catch (const std::exception&) {
    impl_->leave();
    throw;
  }
}

crew::~crew() {
  if (!impl_->is_owner()) {  // a forked child has neither the supervisor's thread nor a right to its siblings
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory the child ends here
    static_cast<void>(new std::shared_ptr<impl>(std::move(impl_)));  // never destroyed
    return;
  }
  stop(std::chrono::nanoseconds(0));
  impl_->leave();
}

void crew::wait_until_greeted() { impl_->wait_until_greeted(); }

void crew::watch() noexcept { impl_->watch(); }

void crew::watch_time(clock::time_point when) noexcept { impl_->watch_time(when); }

void crew::resize(std::size_t size, std::function<void(const error_info*)> done) {
  impl_->resize(size, std::move(done));
}

void crew::call_back(std::size_t worker) noexcept { impl_->call_back(worker); }

bool crew::send(std::size_t worker, int signal) { return impl_->send(worker, signal); }

void crew::begin_stop(worker_order how) noexcept { impl_->begin_stop(how); }

bool crew::wait_until_gone(deadline until) { return impl_->wait_until_gone(until); }

void crew::stop(std::chrono::nanoseconds grace, worker_order how) {
  constexpr auto longest_death = std::chrono::seconds(10);
  impl_->begin_stop(how);
  if (grace > grace.zero() && impl_->wait_until_gone(deadline::after(grace))) return;
  impl_->kill_now();
  if (impl_->wait_until_gone(deadline::after(longest_death))) return;
  impl_->log(log_level::error, "a worker process does not end although it was killed; it is left behind");
}

std::vector<worker_info> crew::workers() const { return impl_->workers(); }

crew_statistics crew::read_statistics() const { return impl_->read_statistics(); }

std::vector<crew_member_statistics> crew::read_member_statistics() const { return impl_->read_member_statistics(); }

}  // namespace muster
