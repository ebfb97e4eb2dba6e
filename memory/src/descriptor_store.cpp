// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/descriptor_store.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/error.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

// Forked children have none of it: it may be memory, of a device too.
struct deposited {
  explicit deposited(unique_fd made) : descriptor(std::move(made)) {}

  unique_fd descriptor;
  const kept_from_children guard{descriptor};
};

using standing = descriptor_store::finding::standing;

constexpr std::uint32_t host_incarnation = 1;

descriptor_name first_of(participant_id depositor, std::uint32_t incarnation) { return {depositor, incarnation, 0}; }
descriptor_name first_of(descriptor_name name) { return first_of(name.depositor(), name.incarnation()); }
descriptor_name last_of(descriptor_name name) {
  return {name.depositor(), name.incarnation(), descriptor_name::most_number};
}

// Above the standard streams, as all that muster makes.
unique_fd duplicate(const unique_fd& what) {
  const auto control = [](int fd, int command, int least) { return ::fcntl(fd, command, least); };
  return unique_fd(system_call("fcntl F_DUPFD_CLOEXEC", control, what.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

// The others are for the program, and for starting workers.
std::size_t half_of_all_descriptors() {
  rlimit limit{};
  const auto get = [](rlimit* where) { return ::getrlimit(RLIMIT_NOFILE, where); };
  system_call("getrlimit RLIMIT_NOFILE", get, &limit);
  return static_cast<std::size_t>(limit.rlim_cur / 2);
}

}  // namespace

descriptor_store::descriptor_store(arena& memory, participant_table& members, recovery_registry& recoveries,
                                   limits most)
    : descriptor_exchange(participant_id::host, host_incarnation),
      memory_(memory),
      members_(members),
      recoveries_(recoveries),
      most_(most) {}

descriptor_store::~descriptor_store() = default;

// ---- deposits

// The hold on the anchor is made first: nothing that fails leaves anything.
void descriptor_store::deposit(descriptor_name name, unique_fd what, const shared_block& anchor) {
  require_here();
  if (!what) throw error(errc::invalid_argument, "a descriptor was to be deposited, but none was given");
  const auto anchor_name = anchor ? memory_.name_of(anchor) : 0;
  if (anchor) memory_.keep(anchor);
  const auto made = std::make_shared<const deposited>(std::move(what));
  kept_fd kept(made, &made->descriptor);
  const scoped_lock lock(mutex_);
  if (!lives(name)) {
    throw error(errc::invalid_argument,
                text("a descriptor was to be deposited for participant ", index_of(name.depositor()), ", incarnation ",
                     name.incarnation(), ", which is dead, or never was"));
  }
  auto& who = depositors_[first_of(name)];
  require_room(who, name);
  entries_.emplace(name, entry{.what = std::move(kept), .anchor = anchor_name});
  if (anchor) attach(anchor_name, anchor);
  ++who.entries;
  use_up(who, name.number());
  settle(name, name);
}

void descriptor_store::require_room(const depositor& who, descriptor_name name) const {
  if (name.number() < who.next && !who.skipped.contains(name.number())) {
    throw error(errc::invalid_argument,
                text("descriptor ", name.number(), " of participant ", index_of(name.depositor()),
                     " was deposited or withdrawn before: give each a name of its own"));
  }
  const auto all = most_.all != 0 ? most_.all : half_of_all_descriptors();
  if (who.entries < most_.each && entries_.size() < all) return;
  throw error(errc::out_of_memory,
              text("the host keeps ", who.entries, " descriptors of participant ", index_of(name.depositor()), " and ",
                   entries_.size(), " of all; it may keep ", most_.each, " and ", all,
                   ": withdraw some, make fewer and bigger ones, or raise RLIMIT_NOFILE (ulimit -n) of the program"));
}

void descriptor_store::attach(std::uint64_t anchor, const shared_block& block) {
  auto& kept = anchors_[anchor];
  if (!kept.block) kept.block = block;
  ++kept.entries;
}

// A number that is left out may still come, until there are too many of those.
void descriptor_store::use_up(depositor& who, std::uint32_t number) {
  constexpr std::uint32_t most_skipped = 4096;
  const auto oldest = number > most_skipped ? number - most_skipped : 0;
  for (auto each = std::max(who.next, oldest); each < number; ++each) who.skipped.insert(each);
  who.next = std::max(who.next, number + 1);
  who.skipped.erase(number);
  while (who.skipped.size() > most_skipped) who.skipped.erase(who.skipped.begin());
}

void descriptor_store::withdraw(descriptor_name name) noexcept {
  if (!is_here()) return;
  remains old;
  const scoped_lock lock(mutex_);
  if (const auto found = entries_.find(name); found != entries_.end()) old = take_out(found);
  if (!lives(name)) return;
  use_up(depositors_[first_of(name)], name.number());
  settle(name, name);
}

descriptor_store::remains descriptor_store::take_out(entry_map::iterator which) {
  remains old;
  const auto who = depositors_.find(first_of(which->first));
  old.what = std::move(which->second);
  entries_.erase(which);
  if (--who->second.entries == 0 && who->second.is_dead) depositors_.erase(who);
  if (old.what.anchor == 0) return old;
  const auto anchor = anchors_.find(old.what.anchor);
  if (--anchor->second.entries > 0) return old;
  old.anchor = std::move(anchor->second.block);
  anchors_.erase(anchor);
  return old;
}

// ---- looking

bool descriptor_store::lives(descriptor_name name) const {
  const auto now = members_.incarnation_of(name.depositor());
  return now && name.is_of(*now);
}

bool descriptor_store::is_awaited(descriptor_name name) const {
  if (!lives(name)) return false;
  const auto found = depositors_.find(first_of(name));
  if (found == depositors_.end()) return true;
  return name.number() >= found->second.next || found->second.skipped.contains(name.number());
}

descriptor_store::finding descriptor_store::look_up(descriptor_name name) const {
  const scoped_lock lock(mutex_);
  const auto found = entries_.find(name);
  if (found != entries_.end()) return {.what = standing::there, .descriptor = found->second.what};
  return {.what = is_awaited(name) ? standing::awaited : standing::gone, .descriptor = {}};
}

std::optional<unique_fd> descriptor_store::fetch(descriptor_name name, deadline until) {
  require_here();
  kept_fd found;
  {
    scoped_lock lock(mutex_);
    auto entry = entries_.find(name);
    for (bool in_time = true; entry == entries_.end(); entry = entries_.find(name)) {
      if (!is_awaited(name)) return std::nullopt;
      if (!in_time) {
        throw error(errc::timed_out, text("descriptor ", name.number(), " of participant ", index_of(name.depositor()),
                                          " was not deposited in time"));
      }
      in_time = changed_.wait_until(lock, until);
    }
    found = entry->second.what;
  }
  return duplicate(*found);
}

// ---- waiting

descriptor_store::waiting::waiting(descriptor_store& store, descriptor_name name, std::function<void()> settled)
    : store_(store) {
  const scoped_lock lock(store_.mutex_);
  place_ = store_.waiting_.emplace(name, std::move(settled));
}

descriptor_store::waiting::~waiting() {
  const scoped_lock lock(store_.mutex_);
  store_.waiting_.erase(place_);
}

void descriptor_store::settle(descriptor_name first, descriptor_name last) {
  changed_.notify_all();
  const auto end = waiting_.upper_bound(last);
  for (auto each = waiting_.lower_bound(first); each != end; ++each) each->second();
}

// ---- deaths

// Of the dead one's number only this incarnation has not been buried.
void descriptor_store::bury(participant_id dead) {
  const scoped_lock lock(mutex_);
  const auto end = depositors_.upper_bound(last_of(first_of(dead, ~0U)));
  for (auto each = depositors_.lower_bound(first_of(dead, 0)); each != end;) {
    each->second.is_dead = true;
    each->second.skipped.clear();
    each = each->second.entries == 0 ? depositors_.erase(each) : std::next(each);
  }
  settle(first_of(dead, 0), last_of(first_of(dead, ~0U)));
}

bool descriptor_store::is_forlorn(const entry& which) const {
  return which.anchor == 0 || memory_.is_sole(anchors_.at(which.anchor).block);
}

void descriptor_store::tidy() {
  std::vector<remains> old;
  const scoped_lock lock(mutex_);
  std::vector<descriptor_name> dead;
  for (const auto& [first, who] : depositors_) {
    if (who.is_dead) dead.push_back(first);
  }
  for (const auto first : dead) {
    const auto end = entries_.upper_bound(last_of(first));
    for (auto each = entries_.lower_bound(first); each != end;) {
      const auto next = std::next(each);
      if (is_forlorn(each->second)) old.push_back(take_out(each));
      each = next;
    }
  }
}

void descriptor_store::let_go(descriptor_name name) noexcept {
  if (!is_here()) return;
  remains old;
  const scoped_lock lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end() || !depositors_.at(first_of(name)).is_dead || !is_forlorn(found->second)) return;
  old = take_out(found);
}

std::vector<shared_block> descriptor_store::anchors_of(participant_id dying) const {
  std::set<std::uint64_t> names;
  std::vector<shared_block> found;
  const scoped_lock lock(mutex_);
  const auto end = entries_.upper_bound(last_of(first_of(dying, ~0U)));
  for (auto each = entries_.lower_bound(first_of(dying, 0)); each != end; ++each) {
    const auto anchor = each->second.anchor;
    const bool is_older = depositors_.at(first_of(each->first)).is_dead;
    if (!is_older && anchor != 0 && names.insert(anchor).second) found.push_back(anchors_.at(anchor).block);
  }
  return found;
}

recovery_registry::registration descriptor_store::on_depositor_death(std::function<void(const shared_block&)> what) {
  return recoveries_.add(recovery_stage::descriptors, [this, what = std::move(what)](participant_id dead) {
    for (const auto& each : anchors_of(dead)) what(each);
  });
}

descriptor_store::statistics descriptor_store::read_statistics() const {
  const scoped_lock lock(mutex_);
  return {.kept = entries_.size(), .waiting = waiting_.size()};
}

}  // namespace muster
