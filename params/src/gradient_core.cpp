// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/gradient_core.hpp>

#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

namespace {

[[noreturn]] void refuse_server(const std::string& why) {
  throw error(errc::invalid_argument, text("a gradient server: ", why));
}

// With all that it leaves open.
gradient_options completed(gradient_options how, const rpc_group& group) {
  const auto members = group.members();
  if (how.primary.empty()) how.primary = members.front();
  if (how.secondaries.empty()) how.secondaries = members;
  if (how.batch == 0) refuse_server("gradient_options::batch is 0");
  auto reducers = how.secondaries;
  reducers.push_back(how.primary);
  for (const auto& each : reducers) {
    if (!group.is_member(each)) refuse_server(text("'", each, "' is no member of the RPC group '", group.name(), "'"));
  }
  return how;
}

gradient_verdict give(gradient_secondary& to, const state_dict& gradients) { return to.give(gradients); }
void flush_secondary(gradient_secondary& which) { which.flush(); }
void flush_primary(gradient_primary& which) { which.flush(); }
void close_secondary(gradient_secondary& which) { which.close(); }
void close_primary(gradient_primary& which) { which.close(); }

}  // namespace

gradient_core::gradient_core(const rpc_group& group, std::shared_ptr<versioned_store> values, std::string name,
                             const gradient_options& how)
    : group_(group),
      own_(group.member()),
      name_(std::move(name)),
      how_(completed(how, group)),
      values_(values),
      server_(std::move(values), how.model),
      random_(std::random_device()()) {}

gradient_core::~gradient_core() {
  try {
    stop();
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): the group's member has left before
  }
}

bool gradient_core::is_secondary() const {
  return std::find(how_.secondaries.begin(), how_.secondaries.end(), own_) != how_.secondaries.end();
}

bool gradient_core::is_gone(const std::string& member) const {
  for (const auto& each : group_.states()) {
    if (each.name == member) return each.state == member_state::left || each.state == member_state::lost;
  }
  return true;
}

void gradient_core::manage(const state_dict& model, const update_rule& rule, learner::schedule rate) {
  if (!is_primary()) refuse_server(text("the model is managed by '", how_.primary, "', and this is '", own_, "'"));
  auto made = std::make_shared<learner>(model, rule, std::move(rate), how_.reduction);
  const scoped_lock lock(mutex_);
  if (runs_) refuse_server("manage() comes before start()");
  if (const auto newest = values_->pull(how_.model)) {
    if (newest->version != model.version()) {
      refuse_server(text("there is a model '", how_.model, "' of version ", newest->version, ", and this one has ",
                         model.version(), ": pull() it first"));
    }
  } else {
    made->model().set_version(0);
    static_cast<void>(server_.push(made->model(), {.pull_on_fail = false}));
  }
  learner_ = std::move(made);
}

void gradient_core::start() {
  const scoped_lock lock(mutex_);
  if (runs_) return;
  if (!is_primary() && !is_secondary()) refuse_server(text("'", own_, "' is no reducer: it needs no start()"));
  if (is_primary()) {
    if (learner_ == nullptr) refuse_server("manage() comes before start(), at the primary");
    static_cast<void>(group_.publish(name_of_primary(), gradient_primary(learner_, server_, failures_, how_)));
  }
  if (is_secondary()) {
    const auto find = [&group = group_, name = name_of_primary()] { return group.wait_for<gradient_primary>(name); };
    static_cast<void>(group_.publish(name_of(own_), gradient_secondary(find, failures_, how_)));
  }
  runs_ = true;
  if (how_.flush_after.count() <= 0) return;
  flusher_ = start_thread([this] { flush_now_and_then(); });
}

void gradient_core::stop() {
  {
    const scoped_lock lock(mutex_);
    if (!std::exchange(runs_, false)) return;
    changed_.notify_all();
  }
  if (flusher_.joinable()) flusher_.join();
  // First the name, so that no client finds it any more; those that have found it are told.
  if (is_secondary()) close_own<gradient_secondary>(name_of(own_), close_secondary);
  if (is_primary()) close_own<gradient_primary>(name_of_primary(), close_primary);
}

template <class Reducer>
void gradient_core::close_own(const std::string& name, void (*close)(Reducer&)) {
  const auto own = group_.find<Reducer>(name);
  group_.withdraw(name);
  try {
    own.call(close);
  } catch (...) {
    failures_->note(std::current_exception());
  }
}

// What goes wrong watch() says.
void gradient_core::flush_own() {
  try {
    if (is_secondary()) group_.find<gradient_secondary>(name_of(own_)).call(flush_secondary);
    if (is_primary()) group_.find<gradient_primary>(name_of_primary()).call(flush_primary);
  } catch (...) {
    failures_->note(std::current_exception());
  }
}

void gradient_core::flush_now_and_then() {
  for (;;) {
    {
      scoped_lock lock(mutex_);
      const auto until = deadline::after(how_.flush_after);
      while (runs_ && changed_.wait_until(lock, until)) {
      }
      if (!runs_) return;
    }
    flush_own();
  }
}

// Empty: none.
std::string gradient_core::find_untold_death() {
  auto reducers = how_.secondaries;
  reducers.push_back(how_.primary);
  const auto states = group_.states();
  const scoped_lock lock(mutex_);
  for (const auto& each : states) {
    const bool reduces = std::find(reducers.begin(), reducers.end(), each.name) != reducers.end();
    if (reduces && each.state == member_state::lost && told_.emplace(each.name, each.incarnation).second)
      return each.name;
  }
  return {};
}

void gradient_core::watch() {
  if (const auto failure = failures_->take()) std::rethrow_exception(failure);
  const auto dead = find_untold_death();
  if (dead.empty()) return;
  throw task_error(
      error_info(errc::peer_lost,
                 text("the reducer '", dead, "' of the gradient server '", name_, "' has died, with at most ",
                      how_.batch - 1, dead == how_.primary ? " sums" : " gradients", " that were not passed on")));
}

// In a random order: the first that is there takes them.
std::vector<std::string> gradient_core::choose() {
  auto all = how_.secondaries;
  const scoped_lock lock(mutex_);
  std::shuffle(all.begin(), all.end(), random_);
  return all;
}

// The first that is there, and takes them.
std::optional<gradient_verdict> gradient_core::give_to_any(const state_dict& gradients) {
  for (const auto& each : choose()) {
    if (!group_.is_published(name_of(each))) continue;
    try {
      const auto found = group_.find<gradient_secondary>(name_of(each)).call(give, gradients);
      if (found != gradient_verdict::closed) return found;
    } catch (const member_lost& failure) {
      if (failure.had_begun()) throw;  // it may count
    } catch (const error& failure) {
      if (failure.code() != errc::invalid_argument || group_.is_published(name_of(each))) throw;
    }
  }
  return std::nullopt;
}

gradient_result gradient_core::push(const state_dict& gradients, state_dict& model) {
  if (!model.is_like(gradients)) refuse_server("gradients have the names, dtypes and shapes of the model");
  auto sent = gradients;
  sent.set_version(model.version());
  auto found = give_to_any(sent);
  for (; !found; found = give_to_any(sent)) wait_for_secondary();
  return {.counted = found == gradient_verdict::counted, .pulled = pull(model)};
}

// For one that has not started yet, or will again.
void gradient_core::wait_for_secondary() {
  for (const auto& each : how_.secondaries) {
    if (is_gone(each)) continue;
    static_cast<void>(group_.wait_for<gradient_secondary>(name_of(each)));
    return;
  }
  throw task_error(error_info(errc::peer_lost, text("no secondary of the gradient server '", name_, "' is there")));
}

void gradient_core::flush() {
  for (const auto& each : how_.secondaries) {
    if (!group_.is_published(name_of(each))) continue;
    try {
      group_.find<gradient_secondary>(name_of(each)).call(flush_secondary);
    } catch (const error& failure) {
      const bool has_gone = failure.code() == errc::peer_lost ||
                            (failure.code() == errc::invalid_argument && !group_.is_published(name_of(each)));
      if (!has_gone) throw;
    }
  }
  group_.wait_for<gradient_primary>(name_of_primary()).call(flush_primary);
}

}  // namespace muster::detail
