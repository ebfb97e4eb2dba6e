// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/end_call.hpp>

#include <utility>

#include <muster/async/detail/callback_executor.hpp>

namespace muster::detail {

end_call::~end_call() {
  if (listening_ != nullptr) listening_->end_listening();
}

void end_call::begin(std::unique_ptr<end_call> self, future_handle& of, end_place where) {
  auto home = of.home();
  if (home != nullptr) {
    self->where_ = where == end_place::steps ? &home->steps() : &home->callbacks();
    self->where_->prepare(*self);
    home->begin_listening();
    self->listening_ = std::move(home);
  }
  self->of_ = std::move(of);
  auto& made = self->of_;
  made.notify(std::move(self));
}

// Once posted, this object may be gone.
void end_call::tell() noexcept {
  const auto home = std::move(listening_);
  deferred_ptr self(this);
  if (home == nullptr) return self->run();  // of nothing that a pool runs: it has ended before
  where_->post(std::move(self));
  home->end_listening();
}

}  // namespace muster::detail
