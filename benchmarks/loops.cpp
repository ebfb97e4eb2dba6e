// SPDX-License-Identifier: BSL-1.0
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <muster/base/clock.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/memfd.hpp>
#include <muster/memory/detail/mapping.hpp>
#include <muster/pool/async.hpp>

#include "windows.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

namespace asio = boost::asio;

// Long enough that the other side is asleep.
constexpr auto nap = std::chrono::microseconds(300);

std::int64_t nanoseconds_now() { return muster::clock::now().time_since_epoch().count(); }

// So many calls are one operation, so that beginning to run a loop does not count.
constexpr std::size_t batch = 10'000;

side in_batches(side what) {
  what.run = [each = std::move(what.run)](std::size_t count) { each(count * batch); };
  return what;
}

void run_all(asio::io_context& loop) {
  loop.run();
  loop.restart();
}

asio::awaitable<void> call_in_turn(const muster::pool& pool, std::size_t count) {
  for (; count > 0; --count) {
    co_await pool.apply_async([](int a, int b) { return a + b; }, 2, 3)(asio::use_awaitable);
  }
}

asio::awaitable<void> call_while_any_left(const muster::pool& pool, std::size_t& left) {
  while (left > 0) {
    --left;
    co_await pool.apply_async(added, 2, 3)(asio::use_awaitable);
  }
}

row co_await_rtt(const effort& how) {
  asio::io_context loop(1);
  const bound_pool waiting;
  const bound_pool on_loop(loop);
  const side ours{.name = "co_await", .run = [&](std::size_t count) {
                    asio::co_spawn(loop, call_in_turn(*on_loop, count), asio::detached);
                    run_all(loop);
                  }};
  const side peer{.name = "pool.apply", .run = [&](std::size_t count) {
                    for (; count > 0; --count) waiting->apply([](int a, int b) { return a + b; }, 2, 3);
                  }};
  return compare("co_await_rtt", how, in_batches(ours), in_batches(peer), batch);
}

row async_throughput(const effort& how) {
  constexpr int coroutines = 1000;
  asio::io_context loop(1);
  const bound_pool waiting;
  const bound_pool on_loop(loop);
  const side ours{.name = "1000 coroutines", .run = [&](std::size_t count) {
                    for (int each = 0; each < coroutines; ++each) {
                      asio::co_spawn(loop, call_while_any_left(*on_loop, count), asio::detached);
                    }
                    run_all(loop);
                  }};
  return compare("async_throughput", how, in_batches(ours), in_batches(window_on(*waiting)), batch);
}

/// A process that writes an eventfd a while after it was asked to, and says when it began to.
class event_writer {
public:
  event_writer()
      : file_(muster::make_memfd("bench-event", sizeof(page))),
        memory_(file_, sizeof(page), muster::mapping::inherit::yes),
        page_(*new(memory_.bytes().data()) page()) {
    child_ = ::fork();
    if (child_ == 0) write_for_ever();
    pin(child_, callee);
  }
  event_writer(const event_writer&) = delete;
  event_writer& operator=(const event_writer&) = delete;
  ~event_writer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  [[nodiscard]] int event() const { return event_.get(); }
  void ask() {
    page_.asked.fetch_add(1);
    muster::futex_wake(muster::futex_address(page_.asked), 1, muster::futex_scope::shared);
  }
  [[nodiscard]] std::int64_t written() const { return page_.written; }

private:
  struct page {
    std::atomic<std::uint32_t> asked = 0;
    std::atomic<std::int64_t> written = 0;
  };
  [[noreturn]] void write_for_ever() {
    for (std::uint32_t done = 0;; ++done) {
      while (page_.asked == done)
        muster::futex_wait(muster::futex_address(page_.asked), done, muster::futex_scope::shared);
      ::usleep(nap.count());
      const std::uint64_t one = 1;
      page_.written = nanoseconds_now();
      if (::write(event_.get(), &one, sizeof one) != sizeof one) std::abort();
    }
  }

  muster::unique_fd event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  muster::unique_fd file_;
  muster::mapping memory_;
  page& page_;
  int child_ = 0;
};

// From the end of what the other process does to the handler; the loop sleeps.
row asio_event(const effort& how) {
  asio::io_context loop(1);
  event_writer writer;
  const bound_pool pool(loop);
  asio::posix::stream_descriptor event(loop, writer.event());
  std::int64_t took = 0;
  const side ours{.name = "completion", .once = [&] {
                    pool->apply_async([] {
                      ::usleep(nap.count());
                      return nanoseconds_now();
                    })(asio::bind_executor(loop, [&](const std::exception_ptr&, std::int64_t ended) {
                      took = nanoseconds_now() - ended;
                    }));
                    run_all(loop);
                    return std::chrono::nanoseconds(took);
                  }};
  const side peer{.name = "eventfd of a process", .once = [&] {
                    writer.ask();
                    event.async_wait(asio::posix::stream_descriptor::wait_read, [&](boost::system::error_code) {
                      std::uint64_t count = 0;
                      if (::read(writer.event(), &count, sizeof count) != sizeof count) std::abort();
                      took = nanoseconds_now() - writer.written();
                    });
                    run_all(loop);
                    return std::chrono::nanoseconds(took);
                  }};
  auto found = compare("asio_event", how, ours, peer);
  event.release();
  return found;
}

row trace_overhead(const effort& how) {
  const auto file = std::filesystem::temp_directory_path() / ("muster-bench-" + std::to_string(::getpid()) + ".json");
  const bound_pool plain;
  bound_pool traced;
  auto ours = window_on(*traced);
  ours.name = "traced";
  ours.begin = [&] { traced->trace_to(file); };
  ours.end = [&] { traced->end_trace(); };
  auto found = compare("trace_overhead", how, in_batches(ours), in_batches(window_on(*plain)), batch);
  std::filesystem::remove(file);
  return found;
}

}  // namespace

std::vector<workload> loops() {
  return {{.name = "co_await_rtt", .run = co_await_rtt},
          {.name = "async_throughput", .run = async_throughput},
          {.name = "asio_event", .run = asio_event},
          {.name = "trace_overhead", .run = trace_overhead}};
}

}  // namespace bench
