// SPDX-License-Identifier: BSL-1.0
#include "undertaker.hpp"

#include <fcntl.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/pidfd.hpp>
#include <muster/base/signals_blocked.hpp>

#include "death_delay.hpp"

namespace muster::detail {

namespace {

// Asio has made the descriptors non-blocking.
void reap_all(const std::vector<unique_fd>& processes) {
  for (const auto& each : processes) {
    ::fcntl(each.get(), F_SETFL, 0);
    try {
      static_cast<void>(reap(each.get()));
    } catch (const error&) {  // NOLINT(bugprone-empty-catch)
      // It cannot be waited for: whoever ends this program reaps it.
    }
  }
}

}  // namespace

undertaker::~undertaker() {
  std::erase_if(unreaped_, [](const unique_fd& each) { return try_reap(each.get()).has_value(); });
  if (unreaped_.empty()) return;
  const signals_blocked scope;
  try {
    std::thread([left = std::move(unreaped_)] { reap_all(left); }).detach();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // No thread is to be had: they stay zombies until this program ends.
  }
}

void undertaker::take(unique_fd process) {
  if (try_reap(process.get())) return;
  unreaped_.push_back(std::move(process));
  delay_ = first_death_delay;
  try_again_later();
}

void undertaker::try_all() {
  std::erase_if(unreaped_, [](const unique_fd& each) { return try_reap(each.get()).has_value(); });
  if (!unreaped_.empty()) try_again_later();
}

void undertaker::try_again_later() {
  timer_.expires_after(std::exchange(delay_, next_death_delay(delay_)));  // ends an earlier wait
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) try_all();
  });
}

}  // namespace muster::detail
