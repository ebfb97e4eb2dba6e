// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/stop_flag.hpp>

namespace muster::detail {

struct stop_flag::tokens {
  struct pass_on {
    std::stop_source to;
    void operator()() noexcept { to.request_stop(); }
  };
  explicit tokens(const std::stop_token& outer) : link(outer, pass_on{source}) {}

  std::stop_source source;
  std::stop_callback<pass_on> link;
};

stop_flag::stop_flag() noexcept = default;
stop_flag::~stop_flag() = default;

void stop_flag::request() noexcept {
  auto told = note();
  told.request_stop();  // calls the program's callbacks: not under the lock
}

std::stop_source stop_flag::note() noexcept {
  const scoped_lock lock(mutex_);
  asked_.store(true);
  return tokens_ != nullptr ? tokens_->source : std::stop_source(std::nostopstate);
}

std::stop_token stop_flag::token(const std::stop_token& outer) {
  const scoped_lock lock(mutex_);
  if (tokens_ == nullptr) {
    tokens_ = std::make_unique<tokens>(outer);
    if (is_requested()) tokens_->source.request_stop();  // there is no callback yet
  }
  return tokens_->source.get_token();
}

}  // namespace muster::detail
