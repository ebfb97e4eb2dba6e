// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_core.hpp>

#include <algorithm>
#include <exception>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/serialize/exceptions.hpp>

#include "kv_names.hpp"

namespace muster::detail {

namespace {

const kv_ticket& require_any(const kv_ticket& ticket, std::size_t rank) {
  if (!ticket) throw error(errc::invalid_argument, "an empty kv_ticket was used: it is for no store");
  const auto all = ticket.options().workers + ticket.options().spare_owners;
  if (rank < all) return ticket;
  throw error(errc::invalid_argument,
              text("rank ", rank, " of a key-value store of ", ticket.options().workers, " workers and ",
                   ticket.options().spare_owners, " spare owners: ranks are 0 to ", all - 1));
}

bool run_command_at(kv_owner& owner, int head, const std::string& body) { return owner.run_command(head, body); }

// What belongs to it has a key that is a little longer.
void require_value_key(const store_key& key) {
  constexpr std::size_t most = store_key::most_bytes - 3;
  if (key.text().size() > most || key.text().starts_with(own_byte)) {
    throw error(errc::invalid_argument,
                text("the key ", key, " cannot be one of a key-value store: texts have at most ", most,
                     " bytes, and do not begin with the byte 1"));
  }
}

}  // namespace

void require_as_many(std::size_t keys, std::size_t values) {
  if (keys == values) return;
  throw error(errc::invalid_argument, text(keys, " keys and ", values, " values were given: one value for each key"));
}

kv_core::kv_core(const kv_ticket& ticket, std::size_t rank)
    : kind_(require_any(ticket, rank).kind()),
      how_(ticket.options()),
      rank_(rank),
      timeout_(how_.timeout.count()),
      values_(ticket.values()),
      placed_(kind_ == kv_kind::device ? std::make_shared<kv_placed>(values_) : nullptr),
      members_(ticket, rank, values_, placed_,
               [this](int head, const std::string& body) { return run_command(head, body); }),
      sender_(members_, values_, rank),
      files_(values_, [this](std::size_t bytes) { return members_.as_owner(choose_owner(bytes)); }),
      loads_(members_.owner_count()),
      async_(
          sender_, [this](const store_key& key) { return pull(key); }, members_.home(), how_.window,
          [this] { return end_of_call(); }) {
  align_barriers();
}

deadline kv_core::end_of_call(std::chrono::nanoseconds given) const {
  return deadline::after(given.count() != 0 ? given : std::chrono::nanoseconds(timeout_.load()));
}

void kv_core::set_timeout(std::chrono::nanoseconds timeout) {
  if (timeout <= std::chrono::nanoseconds::zero()) {
    throw error(errc::invalid_argument, "a key-value store's timeout is to be positive");
  }
  timeout_ = timeout.count();
}

namespace {

store_key barriers_of(std::size_t rank) { return key_of_all('b', std::to_string(rank)); }

}  // namespace

// How often that one has come to a barrier; of none there, 0.
std::uint64_t kv_core::count_of(std::size_t rank) const {
  const auto found = values_.try_pull<std::uint64_t>(barriers_of(rank));
  return found ? found->value : 0;
}

// One that joins in another's place is as far as those that are there.
void kv_core::align_barriers() {
  if (members_.find(rank_).incarnation == 1) return;
  std::uint64_t most = 0;
  for (const auto each : members_.living()) most = std::max(most, count_of(each));
  if (rank_ < how_.workers) values_.push(barriers_of(rank_), most);
}

// Each says in the store how often it has come: the spare owners do not.
void kv_core::barrier(std::chrono::nanoseconds timeout) {
  const auto own = count_of(rank_) + 1;
  values_.push(barriers_of(rank_), own);
  wake_waiters(values_);
  std::string missing;
  const auto has_come = [&](std::size_t rank) {
    if (count_of(rank) >= own) return true;
    const auto found = members_.find(rank).state;
    if (found == member_state::lost) {
      throw task_error(error_info(errc::peer_lost, text("worker ", rank, " has died before a barrier")));
    }
    return found == member_state::left;
  };
  const auto have_come = [&] {
    missing.clear();
    for (std::size_t rank = 0; rank < how_.workers; ++rank) {
      if (!has_come(rank)) missing += text(missing.empty() ? "" : ", ", rank);
    }
    return missing.empty();
  };
  if (wait_for_change(values_, barriers_of(rank_), have_come, end_of_call(timeout))) return;
  values_.push(barriers_of(rank_), own - 1);  // it has not come, then
  throw task_error(
      error_info(errc::timed_out, text("a barrier of a key-value store waited in vain for workers ", missing)));
}

// The one that has least to do.
std::size_t kv_core::choose_owner(std::size_t bytes) {
  const scoped_lock lock(mutex_);
  const auto least = std::min_element(loads_.begin(), loads_.end());
  *least += bytes;
  return static_cast<std::size_t>(least - loads_.begin());
}

void kv_core::note_init(const store_key& key) {
  require_value_key(key);
  const scoped_lock lock(mutex_);
  if (known_.insert(key).second) return;
  throw error(errc::invalid_argument, text("the key ", key, " was initialized twice by worker ", rank_));
}

// It may be tried again.
void kv_core::forget_init(const store_key& key) {
  const scoped_lock lock(mutex_);
  known_.erase(key);
}

// What is to lie on a GPU is put there now, where a lack of memory is said.
void kv_core::init_one(const store_key& key, const tensor& value) {
  if (!values_.contains(key)) {
    const auto owner = choose_owner(value.nbytes());
    static_cast<void>(values_.push_all({{key, value, 0}, {key_beside(key, 'o'), members_.as_owner(owner)}}));
  }
  if (!placed_ || value.device().is_cpu()) return;
  placed_->place(key, value.device());
  static_cast<void>(placed_->find(key));
}

void kv_core::init(const std::vector<store_key>& keys, const std::vector<tensor>& values) {
  require_as_many(keys.size(), values.size());
  for (const auto& each : keys) note_init(each);
  for (std::size_t each = 0; rank_ == 0 && each < keys.size(); ++each) init_one(keys[each], values[each]);
  const auto until = end_of_call();
  for (const auto& each : keys) {
    const auto is_there = [&] { return values_.contains(each); };
    if (wait_for_change(values_, each, is_there, until)) continue;
    forget_init(each);
    throw task_error(error_info(errc::timed_out, text("worker ", rank_, " waited in vain for the value ", each,
                                                      ": rank 0 has not initialized it")));
  }
}

// The last one that is set counts: a rule is not asked where there is an updater.
void kv_core::set_rule(const update_rule& rule) {
  rule.require();
  const auto key = key_of_all('r');
  for (;;) {
    const auto now = values_.try_pull<kv_rule>(key);
    if (now && now->value.rule == rule) break;
    kv_rule next{.rule = rule};
    if (now) next.kind = now->value.kind + (next.goes_on_from(now->value.rule) ? 0 : 1);
    if (values_.push(key, next, {.expected = now ? now->version : 0})) break;
  }
  const auto updater = key_of_all('u');
  for (;;) {
    const auto now = values_.try_pull<bool>(updater);
    if (!now || !now->value || values_.push(updater, false, {.expected = now->version})) return;
  }
}

void kv_core::set_updater(const kv_updater_setter& set) {
  const auto key = key_of_all('u');
  sender_.set_updater_giver(
      [set, key, values = values_](const remote_ref<kv_owner>& to) { set(to, values.version(key)); });
  for (;;) {
    const auto now = values_.version(key);
    for (const auto& each : members_.owners(end_of_call())) {
      try {
        set(each, now + 1);
      } catch (const member_lost&) {  // NOLINT(bugprone-empty-catch): it is given to the next owner
      }
    }
    if (values_.push(key, true, {.expected = now})) return;
  }
}

void kv_core::on_command(std::function<void(int, std::string)> run) {
  const scoped_lock lock(mutex_);
  command_.swap(run);
}

bool kv_core::run_command(int head, const std::string& body) {
  std::function<void(int, std::string)> run;
  {
    const scoped_lock lock(mutex_);
    run = command_;
  }
  if (run) run(head, body);
  return static_cast<bool>(run);
}

void kv_core::send_command(int head, const std::string& body) const {
  std::vector<std::pair<std::string, future<bool>>> all;
  for (const auto& each : members_.owners(end_of_call())) {
    all.emplace_back(each.owner(), each.call_async(run_command_at, head, body));
  }
  std::string without;
  for (auto& [owner, ran] : all) {
    if (!ran.get()) without += text(without.empty() ? "" : ", ", owner);
  }
  if (without.empty()) return;
  throw error(errc::invalid_argument,
              text("the command ", head, " was not run by ", without, ": each owner of keys calls on_command"));
}

void kv_core::set_compression(const gradient_compression& how) {
  how.require();
  const scoped_lock lock(mutex_);
  if (compression_ == how) return;
  compression_ = how;
  residuals_.clear();
}

bool kv_core::compresses() {
  const scoped_lock lock(mutex_);
  return compression_.kind != gradient_compression::bits::all;
}

kv_gradient kv_core::gradient_of(const store_key& key, const tensor& value) {
  if (!compresses()) return kv_gradient(value.to(placed_ ? placed_->where(key) : device::cpu()));
  const auto here = value.to(device::cpu());
  kv_gradient whole(here);
  const scoped_lock lock(mutex_);
  if (compression_.kind == gradient_compression::bits::all) return whole;
  whole.require_like(values_.pull<tensor>(key).value, key, rank_);
  auto& residual = residuals_[key];
  if (residual.shape() != here.shape()) residual = tensor::zeros(dtype::f32, here.shape());
  return {compression_.compress(here, residual), compression_};
}

tensor kv_core::pull(const store_key& key) const {
  if (auto there = placed_ ? placed_->find(key) : std::nullopt) return std::move(there->value);
  return values_.pull<tensor>(key).value;
}

std::vector<tensor> kv_core::pull_all(const std::vector<store_key>& keys) const {
  if (placed_) return placed_->pull_all(keys);
  std::vector<tensor> all;
  for (auto& each : values_.pull_all<tensor>(keys)) all.push_back(std::move(each.value));
  return all;
}

const store& kv_core::written_values() const {
  if (placed_) placed_->write_back();
  return values_;
}

void kv_core::save(const std::string& path) const {
  if (!placed_) return kv_files::write(files_.find(), path);
  std::vector<stored_version> all;
  placed_->write_back([&] { all = files_.find(); });
  kv_files::write(all, path);
}

// All are sent before any is waited for, also where some fail. Where there are asynchronous ones too, these are behind
// them.
void kv_core::push(const std::vector<store_key>& keys, std::vector<kv_gradient> gradients) {
  require_as_many(keys.size(), gradients.size());
  const auto until = end_of_call();
  for (const auto& each : keys) sender_.require_there(each);
  std::vector<kv_sending> all;
  std::vector<future<void>> behind;
  std::exception_ptr first;
  const auto note_failure = [&](const auto& step) {
    try {
      step();
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  };
  const auto begin = [&](std::size_t each) {
    if (async_.is_used()) {
      behind.push_back(async_.push(keys[each], std::move(gradients[each]), 0));
    } else {
      all.push_back(sender_.begin(keys[each], std::move(gradients[each]), until));
    }
  };
  for (std::size_t each = 0; each < keys.size(); ++each) note_failure([&] { begin(each); });
  for (auto& each : all) note_failure([&] { sender_.finish(each); });
  for (auto& each : behind) note_failure([&] { each.get(); });
  if (first != nullptr) std::rethrow_exception(first);
}

future<void> kv_core::push_async(const store_key& key, kv_gradient gradient, int priority) {
  return async_.push(key, std::move(gradient), priority);
}

future<tensor> kv_core::pull_async(const store_key& key, int priority) { return async_.pull(key, priority); }

}  // namespace muster::detail
