// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/event.hpp>

#include <algorithm>
#include <climits>
#include <new>
#include <string_view>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/detail/pending_work.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/event_word.hpp>

#include <muster/serialize/archive.hpp>
#include "event_memory.hpp"
#include "event_wait.hpp"

namespace muster {

event::event() : event(domain::of_program()) {}

event::event(std::shared_ptr<domain> where)
    : domain_(std::move(where)), block_(domain_->blocks().allocate_shared(sizeof(memory))) {
  static_assert(sizeof(memory) == 16);
  new (block_.data()) memory;
}

event::memory& event::shared() const {
  MUSTER_ASSERT(block_);
  domain_->require_mapped("an event");
  return *reinterpret_cast<memory*>(block_.data());
}

std::atomic<std::uint64_t>& event::word() const { return shared().word; }

void event::set() const {
  detail::pending_work::await();
  auto& where = shared();
  tell_place(where.setter);
  if (event_protocol::set(where.word)) futex_wake(futex_address(where.word), INT_MAX, futex_scope::shared);
}

void event::clear() const { event_protocol::clear(word()); }

bool event::is_set() const { return event_protocol::is_set(word().load(std::memory_order_acquire)); }

bool event::wait_until(deadline until) const { return detail::event_wait::run(*this, *domain_, until); }

void event::save(output_archive& archive) const {
  if (!archive.attaches()) {
    throw error(errc::not_serializable,
                "an event was to be sent where only copies can go (elements and results of maps, initializers): a copy "
                "would be another event. Send it as an argument or result of a call, or bind it (muster::bind_front)");
  }
  archive.attach(block_);
}

void event::load(input_archive& archive) {
  auto block = archive.take_attachment();
  auto where = domain::of_program();
  if (block.size() < sizeof(memory)) {
    throw error(errc::corrupted,
                text("an event came as a block of ", block.size(), " bytes; whoever sent it misbehaves"));
  }
  static_cast<void>(where->blocks().name_of(block));  // throws when it is of another domain
  block_ = std::move(block);
  domain_ = std::move(where);
}

// ---- several

bool combined_event::is_set() const {
  const bool wanted = how_ == manner::any;
  for (const auto& each : events_) {
    if (each.is_set() == wanted) return wanted;
  }
  for (const auto& each : parts_) {
    if (each.is_set() == wanted) return wanted;
  }
  return !wanted;
}

bool combined_event::wait_until(deadline until) const { return detail::event_wait::run(*this, *where(), until); }

void combined_event::add(std::vector<event> parts) {
  for (auto& each : parts) events_.push_back(std::move(each));
}

void combined_event::add(std::vector<combined_event> parts) {
  for (auto& each : parts) parts_.push_back(std::move(each));
}

const std::shared_ptr<domain>& combined_event::where() const noexcept {
  return events_.empty() ? parts_.front().where() : events_.front().where();
}

namespace {

// The one that is not the program's is the other one, in whatever order they were given.
std::string_view why_apart(domain& one, domain& other) {
  const bool is_in_order = &other != domain::of_program().get();
  return is_in_order ? detail::why_apart(one.blocks(), other.blocks())
                     : detail::why_apart(other.blocks(), one.blocks());
}

}  // namespace

void combined_event::check() {
  if (events_.empty() && parts_.empty()) {
    throw error(errc::invalid_argument, "any_of or all_of of no events: there is nothing that could be waited for");
  }
  const auto add_width = [this](std::size_t more) {
    width_ = how_ == manner::any ? width_ + more : std::max(width_, more);
  };
  domain* other = nullptr;
  const auto look_at = [&](domain& each) {
    if (&each != where().get()) other = &each;
  };
  for (const auto& each : events_) {
    add_width(1);
    look_at(*each.where());
  }
  for (const auto& each : parts_) {
    add_width(each.width_);
    look_at(*each.where());
  }
  if (other != nullptr) {
    throw error(errc::invalid_argument,
                text("any_of or all_of of events of different domains: a wait looks at one domain, so make the events "
                     "in one. ",
                     why_apart(*where(), *other)));
  }
  if (width_ <= max_width) return;
  throw error(errc::invalid_argument,
              text("any_of of ", width_, " events: a wait can sleep on ", max_width,
                   " at most. Let those who set them set a common event as well, or use a queue"));
}

}  // namespace muster
