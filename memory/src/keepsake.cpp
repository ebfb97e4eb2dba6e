// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/keepsake.hpp>

#include <utility>

namespace muster {

void keepsake_list::add(std::unique_ptr<keepsake> what, const void* subject) {
  const scoped_lock lock(mutex_);
  kept_.emplace(subject, std::move(what));
}

// Those that are done are destroyed one at a time, without the lock: what a keepsake lets go of may itself be a reason
// to tidy. Calls that tidy at once go on from the same place, so that together they ask each once.
void keepsake_list::tidy() noexcept {
  for (auto questions = size(); questions > 0;) static_cast<void>(take_next(questions));
}

void keepsake_list::tidy_some(const void* subject) noexcept {
  constexpr std::size_t few = 16;
  if (subject != nullptr) static_cast<void>(take_of(subject));
  for (std::size_t questions = few; questions > 0;) static_cast<void>(take_next(questions));
}

std::size_t keepsake_list::size() const {
  const scoped_lock lock(mutex_);
  return kept_.size();
}

std::unique_ptr<keepsake> keepsake_list::take_of(const void* subject) noexcept {
  const scoped_lock lock(mutex_);
  const auto found = kept_.find(subject);
  return found != kept_.end() ? take_if_done(found) : nullptr;
}

// The next that is done, and one question less for each that was asked; none is left when there is nothing to ask.
std::unique_ptr<keepsake> keepsake_list::take_next(std::size_t& questions) noexcept {
  const scoped_lock lock(mutex_);
  if (kept_.empty()) questions = 0;
  for (; questions > 0; --questions) {
    if (next_ == kept_.end()) next_ = kept_.begin();
    if (auto done = take_if_done(next_++)) {
      --questions;
      return done;
    }
  }
  return nullptr;
}

std::unique_ptr<keepsake> keepsake_list::take_if_done(kept::iterator which) noexcept {
  if (!which->second->is_done()) return nullptr;
  auto done = std::move(which->second);
  if (next_ == which) ++next_;
  kept_.erase(which);
  return done;
}

}  // namespace muster
