// SPDX-License-Identifier: BSL-1.0
// Calls of members of an RPC group.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/pool/process.hpp>
#include <muster/rpc.hpp>

#include "python_peer.hpp"
#include "told_program.hpp"
#include "windows.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

void serve_as(const muster::rpc_ticket& ticket, const std::string& name) { muster::rpc_group(ticket, name).run(); }

/// A member of this process, and one of another.
class two_members {
public:
  two_members() = default;

  /// Each on a processor of its own. Behind a call: the other one has all its threads.
  void bind() const {
    static_cast<void>(call());
    for (const auto& each : std::filesystem::directory_iterator("/proc/" + std::to_string(there_.pid()) + "/task")) {
      pin(std::stoi(each.path().filename()), callee);
    }
    pin(0, caller);
  }

  [[nodiscard]] const muster::rpc_group& operator*() const { return here_; }
  [[nodiscard]] const muster::rpc_group* operator->() const { return &here_; }
  [[nodiscard]] int call() const { return here_.call("b", added, 2, 3); }

private:
  const muster::rpc_ticket ticket_{"bench", {"a", "b"}};
  const muster::rpc_group here_{ticket_, "a"};  // goes behind the process, whose member then is alone, and ends
  const muster::process there_{serve_as, ticket_, "b"};
};

side calls_of(const two_members& both) {
  return {.name = "group.call", .run = [&both](std::size_t count) {
            for (std::size_t index = 0; index < count; ++index) {
              if (both.call() != 5) std::abort();
            }
          }};
}

row rpc_rtt(const effort& how) {
  const bound_pool pool;
  unpin();
  const two_members both;
  both.bind();
  const side peer{.name = "pool.apply", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) pool->apply(added, 2, 3);
                  }};
  return compare_calls("rpc_rtt", how, calls_of(both), {peer});
}

row rpc_window_256(const effort& how) {
  const bound_pool pool;
  unpin();
  const two_members both;
  both.bind();
  const side ours{.name = "group.call_async", .run = [&](std::size_t count) {
                    run_window(count, [&] { return both->call_async("b", added, 2, 3); });
                  }};
  return compare("rpc_window_256", how, ours, window_on(*pool));
}

std::size_t bytes_of(const muster::tensor& what) { return what.nbytes(); }

row rpc_large_tensor(const effort& how) {
  constexpr std::int64_t bytes = std::int64_t{64} << 20U;
  const auto large = muster::tensor::zeros<std::uint8_t>({bytes});
  const two_members both;
  both.bind();
  const side ours{.name = "group.call with a tensor", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      if (both->call("b", bytes_of, large) != static_cast<std::size_t>(bytes)) std::abort();
                    }
                  }};
  return compare("rpc_tensor_64MiB", how, ours, calls_of(both));
}

// Nothing is bound: each side is what a newcomer gets.
row rpc_vs(const std::string& name, const std::string& what, const effort& how, told_program& peer) {
  unpin();
  const two_members both;
  return compare_calls(name, how, calls_of(both),
                       {{.name = what,
                         .run = [&](std::size_t count) { peer.run(count); },
                         .singly = [&](std::size_t count) { return peer.run_singly(count); }}});
}

workload beside_program(const std::string& name, const std::string& program, const std::string& what) {
  const auto path = std::filesystem::canonical("/proc/self/exe").parent_path() / program;
  return {
      .name = name,
      .run =
          [=](const effort& how) {
            told_program peer({path.string()});
            return rpc_vs(name, what, how, peer);
          },
      .needs_two_processors = false,
      .hindrance = [=] { return std::filesystem::exists(path) ? "" : what + " was not there when bench was built"; }};
}

row rpc_vs_torch(const effort& how) {
  python_peer peer(with_torch_rpc("for _ in range(count): rpc.rpc_sync('b', add, args=(2, 3))"));
  return rpc_vs("rpc_vs_torch", "torch " + python_peer::version_of("torch") + " rpc.rpc_sync", how, peer);
}

std::chrono::nanoseconds time_of_death(const muster::rpc_ticket& ticket, const muster::rpc_group& group) {
  const muster::process victim(serve_as, ticket, "b");
  group.with({.awaits_rejoin = true}).call("b", [] {});
  auto call = group.call_async("b", [] {
    while (!muster::this_call::stop_requested()) ::usleep(1'000'000);
  });
  return time_of([&] {
    victim.kill(SIGKILL);
    static_cast<void>(call.get_result());
  });
}

// 99 of 100 kills are told within that.
row rpc_death(const effort& how) {
  constexpr double most = 20e6;
  const muster::rpc_ticket ticket("deaths", {"a", "b"});
  const muster::rpc_group group(ticket, "a");
  std::vector<double> times;
  for (std::size_t each = 0; each < 10 * how.rounds; ++each) {
    times.push_back(static_cast<double>(time_of_death(ticket, group).count()));
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return times[static_cast<std::size_t>(std::floor(part * static_cast<double>(times.size() - 1)))];
  };
  auto found = amount("rpc_death", "ns", at(0.99), most);
  found.ours = tail{.p90 = at(0.9), .p99 = at(0.99)};
  return found;
}

}  // namespace

std::vector<workload> rpc_calls() {
  return {{.name = "rpc_rtt", .run = rpc_rtt},
          {.name = "rpc_window_256", .run = rpc_window_256},
          {.name = "rpc_tensor_64MiB", .run = rpc_large_tensor},
          beside_program("rpc_vs_grpc", "grpc_peer", "gRPC, C++, Unix socket"),
          beside_program("rpc_vs_capnp", "capnp_peer", "Cap'n Proto, Unix socket"),
          {.name = "rpc_vs_torch", .run = rpc_vs_torch, .needs_two_processors = false, .needs_module = "torch"},
          {.name = "rpc_death", .run = rpc_death, .needs_two_processors = false}};
}

}  // namespace bench
