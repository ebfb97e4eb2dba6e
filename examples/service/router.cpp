// SPDX-License-Identifier: BSL-1.0
#include "router.hpp"

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include <boost/asio/use_awaitable.hpp>

#include <muster/pool/async.hpp>

namespace service {

namespace {

constexpr unsigned longest_sleep_ms = 60'000;
// A file is read again if the worker died meanwhile, whoever killed it: that does no harm.
constexpr unsigned hash_retries = 5;

constexpr auto help = R"(Answers to GET requests, each worked out in a worker process:

  /hash?path=FILE  the hash of the file's content (XXH3, 128 bits, as xxh128sum shows it)
  /sleep?ms=N      after N milliseconds
  /crash           the worker dies; nobody else notices
  /metrics         what the pool has done, for Prometheus
)";

unsigned status_of(muster::errc code) {
  switch (code) {
    case muster::errc::timed_out: return 504;
    case muster::errc::overflow:
    case muster::errc::out_of_memory:
    case muster::errc::pool_closed:
    case muster::errc::cancelled: return 503;
    default: return 500;
  }
}

answer answer_of(const muster::error_info& failure) { return {status_of(failure.code()), failure.describe() + '\n'}; }

unsigned status_of_file(int failure) {
  switch (failure) {
    case ENOENT:
    case ENOTDIR: return 404;
    case EACCES:
    case EPERM: return 403;
    case EISDIR:
    case ENAMETOOLONG: return 400;
    default: return 500;
  }
}

}  // namespace

answer answer_of(const file_hash& found, const std::string& path) {
  if (found.failure != 0)
    return {status_of_file(found.failure), path + ": " + std::generic_category().message(found.failure) + '\n'};
  constexpr auto digits = "0123456789abcdef";
  std::string line;
  for (const auto byte : found.digest) (line += digits[byte / 16]) += digits[byte % 16];
  return {200, line + "  " + path + '\n'};
}

boost::asio::awaitable<answer> router::operator()(std::string target) const {
  try {
    const request_target asked(target);
    co_return co_await route(asked);
  } catch (const bad_request& refused) {
    co_return answer(400, std::string(refused.what()) + '\n');
  } catch (const muster::error& failure) {  // the pool takes no tasks
    const bool is_ours = failure.code().category() == muster::error_category();
    const auto status = is_ours ? status_of(static_cast<muster::errc>(failure.code().value())) : 500;
    co_return answer(status, std::string(failure.what()) + '\n');
  } catch (const std::exception& failure) {
    co_return answer(500, std::string(failure.what()) + '\n');
  }
}

boost::asio::awaitable<answer> router::route(const request_target& asked) const {
  if (asked.path() == "/hash") co_return co_await hash(asked);
  if (asked.path() == "/sleep") co_return co_await sleep(asked);
  if (asked.path() == "/crash") co_return co_await crash();
  if (asked.path() == "/metrics") co_return metrics();
  if (asked.path() == "/") co_return answer(200, help);
  co_return answer(404, "there is nothing at " + asked.path() + "; / lists what there is\n");
}

boost::asio::awaitable<answer> router::hash(const request_target& asked) const {
  const auto& path = asked.parameter("path", "FILE");
  const muster::task_options how{.deadline = deadline_, .retries = hash_retries, .label = "hash"};
  auto hashing = pool_.with(how).apply_async(hash_file, path).as_result();
  const muster::result<file_hash> found = co_await std::move(hashing);
  co_return found ? answer_of(*found, path) : answer_of(found.error());
}

boost::asio::awaitable<answer> router::sleep(const request_target& asked) const {
  const std::chrono::milliseconds time(asked.number("ms", longest_sleep_ms));
  const muster::task_options how{.deadline = deadline_, .label = "sleep"};
  auto sleeping = pool_.with(how).apply_async(sleep_for, time).as_result();
  const muster::result<void> slept = co_await std::move(sleeping);
  co_return slept ? answer(200, "slept for " + std::to_string(time.count()) + " ms\n") : answer_of(slept.error());
}

boost::asio::awaitable<answer> router::crash() const {
  const muster::task_options how{.deadline = deadline_, .label = "crash"};
  auto crashing = pool_.with(how).apply_async(service::crash).as_result();
  const muster::result<void> ended = co_await std::move(crashing);
  co_return ended ? answer(500, "the worker has survived\n") : answer_of(ended.error());
}

answer router::metrics() const {
  return {200, muster::to_prometheus(pool_.stats(), "service"), "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace service
