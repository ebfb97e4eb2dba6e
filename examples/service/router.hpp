// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <string>

#include <boost/asio/awaitable.hpp>

#include <muster/pool/pool.hpp>

#include "answer.hpp"
#include "request_target.hpp"
#include "tasks.hpp"

namespace service {

/// The service itself: finds out what a request wants, has a worker do it, and says how that went. A handler.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the pool. It must outlive the coroutines that it has made.
class router {
public:
  /// `deadline`: after which a request that no worker has done is answered with 504.
  router(const muster::pool& pool, std::chrono::nanoseconds deadline) : pool_(pool), deadline_(deadline) {}

  [[nodiscard]] boost::asio::awaitable<answer> operator()(std::string target) const;

private:
  [[nodiscard]] boost::asio::awaitable<answer> route(const request_target& asked) const;
  [[nodiscard]] boost::asio::awaitable<answer> hash(const request_target& asked) const;
  [[nodiscard]] boost::asio::awaitable<answer> sleep(const request_target& asked) const;
  [[nodiscard]] boost::asio::awaitable<answer> crash() const;
  [[nodiscard]] answer metrics() const;

  const muster::pool& pool_;
  std::chrono::nanoseconds deadline_;
};

/// What a client of /hash is told of a file.
[[nodiscard]] answer answer_of(const file_hash& found, const std::string& path);

}  // namespace service
