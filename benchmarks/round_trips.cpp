// SPDX-License-Identifier: BSL-1.0
#include <numeric>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include "core_pair.hpp"
#include "futex_pong.hpp"
#include "ping_pong.hpp"
#include "python_peer.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

side spinning_peer(ping_pong& peer) {
  return {.name = "two-process spin ping-pong",
          .run = [&](std::size_t count) { peer.run(count); },
          .begin = [&] { peer.begin(); },
          .end = [&] { peer.end(); }};
}

side apply_on(const muster::pool& pool) {
  return {.name = "pool.apply", .run = [&pool](std::size_t count) {
            for (std::size_t index = 0; index < count; ++index) pool.apply([](int a, int b) { return a + b; }, 2, 3);
          }};
}

row core_rtt_spin(const effort& how) {
  ping_pong peer(callee);
  core_pair core(callee);
  pin(0, caller);
  return compare("core_rtt_spin", how, {.name = "core", .run = [&](std::size_t count) { core.run(count); }},
                 spinning_peer(peer));
}

row apply_rtt(const effort& how) {
  ping_pong peer(callee);
  const bound_pool pool;
  return compare_calls("apply_rtt", how, apply_on(*pool), {spinning_peer(peer)});
}

side posts_to(boost::asio::thread_pool& threads, const std::string& name) {
  return {.name = name, .run = [&threads](std::size_t count) {
            for (std::size_t index = 0; index < count; ++index) {
              boost::asio::post(threads, boost::asio::use_future([a = 2, b = 3] { return a + b; })).get();
            }
          }};
}

// Nothing is bound, nothing is set: what a newcomer gets from either. Two threads of asio's on two processors take ten
// times as long as one, by themselves: so one is a peer too.
row apply_rtt_vs_thread_pool(const effort& how) {
  boost::asio::thread_pool one(1);
  boost::asio::thread_pool usual;
  const muster::pool pool;
  return compare_calls("apply_rtt_vs_thread_pool", how, apply_on(pool),
                       {posts_to(one, "asio::thread_pool(1), std::future"), posts_to(usual, "asio::thread_pool()")});
}

row apply_rtt_asleep(const effort& how) {
  futex_pong partner(callee);
  const bound_pool pool;
  const auto worker = pool->workers().front().pid;
  const side ours{.name = "pool.apply", .once = [&] {
                    let_sleep(worker);
                    return time_of([&] { pool->apply([](int a, int b) { return a + b; }, 2, 3); });
                  }};
  const side peer{.name = "two-process futex round trip", .once = [&] {
                    let_sleep(partner.partner());
                    return time_of([&] { partner.round_trip(); });
                  }};
  return compare("apply_rtt_asleep", how, ours, peer);
}

// A call of a pool of two, ours and of Python: `module` does `program`.
row apply_vs(const std::string& name, const effort& how, const std::string& what, const python_program& program) {
  python_peer python(program);
  const muster::pool pool({.workers = 2});
  return compare_calls(name, how, apply_on(pool),
                       {{.name = what,
                         .run = [&](std::size_t count) { python.run(count); },
                         .singly = [&](std::size_t count) { return python.run_singly(count); }}});
}

workload call_of_python(const std::string& name, const std::string& module, const std::string& what,
                        const std::function<python_program()>& program) {
  return {.name = name,
          .run =
              [=](const effort& how) {
                return apply_vs(name, how, module + ' ' + python_peer::version_of(module) + ' ' + what, program());
              },
          .needs_two_processors = false,
          .needs_module = module};
}

row imap_vs_python(const effort& how) {
  python_peer python(with_pool(2, "for _ in pool.imap(add_one, range(count), chunksize=1): pass"));
  const muster::pool pool({.workers = 2});
  const side ours{.name = "imap, chunk 1", .run = [&](std::size_t count) {
                    std::vector<int> input(count);
                    std::iota(input.begin(), input.end(), 0);
                    int expected = 0;
                    for (const int found : pool.with({.chunk = 1}).imap([](int x) { return x + 1; }, input)) {
                      if (found != ++expected) std::abort();
                    }
                  }};
  return compare("imap_vs_python", how, ours,
                 {.name = "multiprocessing " + python_peer::version_of("multiprocessing") + " Pool.imap",
                  .run = [&](std::size_t count) { python.run(count); }});
}

}  // namespace

std::vector<workload> round_trips() {
  return {{.name = "core_rtt_spin", .run = core_rtt_spin},
          {.name = "apply_rtt", .run = apply_rtt},
          {.name = "apply_rtt_vs_thread_pool", .run = apply_rtt_vs_thread_pool},
          {.name = "apply_rtt_asleep", .run = apply_rtt_asleep},
          call_of_python("apply_vs_python", "multiprocessing", "Pool.apply",
                         [] { return with_pool(2, "for _ in range(count): pool.apply(add, (2, 3))"); }),
          call_of_python("apply_vs_loky", "loky", "executor.submit().result()",
                         [] { return with_loky(2, "for _ in range(count): pool.submit(add, 2, 3).result()"); }),
          call_of_python("apply_vs_mpire", "mpire", "WorkerPool.apply",
                         [] { return with_mpire(2, "for _ in range(count): pool.apply(add, (2, 3))"); }),
          call_of_python("apply_vs_ray", "ray", "ray.get(actor.method.remote())",
                         [] { return with_ray("for _ in range(count): ray.get(pool.add.remote(2, 3))"); }),
          {.name = "imap_vs_python",
           .run = imap_vs_python,
           .needs_two_processors = false,
           .needs_module = "multiprocessing"}};
}

}  // namespace bench
