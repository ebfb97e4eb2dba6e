// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/collectives/graph.hpp>

#include "workloads.hpp"

namespace bench {

namespace {

constexpr auto step_time = std::chrono::milliseconds(50);
constexpr int messages = 4;

const muster::graph_form number{muster::dtype::f32, {}};

/// Carries nothing, and takes its time for that: one transfer after the other, 50 ms each.
class throttled_link final : public muster::graph_link {
public:
  ticket isend(const muster::tensor& /*what*/, int /*to*/, int /*tag*/) override { return start(); }
  ticket irecv(const muster::tensor& /*room*/, int /*from*/, int /*tag*/) override { return start(); }
  bool test(ticket which) override { return ends_[which - 1] <= muster::clock::now(); }
  bool wait(ticket which, muster::deadline until) override {
    std::this_thread::sleep_until(std::min(ends_[which - 1], until.when()));
    return test(which);
  }
  void abort(std::string_view /*why*/) noexcept override {}

private:
  ticket start() {
    free_ = std::max(free_, muster::clock::now()) + step_time;
    ends_.push_back(free_);
    return ends_.size();
  }

  muster::clock::time_point free_;
  std::vector<muster::clock::time_point> ends_;
};

void compute_slowly(const muster::tensor& /*out*/) { std::this_thread::sleep_for(step_time); }

std::string value_name(const char* what, int index) { return what + std::to_string(index); }

// Defined in the order of the peer: all that is sent, then all that is computed.
muster::graph_plan make_plan() {
  muster::graph made;
  auto here = made.on(0);
  for (int each = 0; each < messages; ++each) {
    here.send(here.input(value_name("x", each), muster::tensor::zeros<float>({})), {.to = 1, .tag = each});
  }
  for (int each = 0; each < messages; ++each) here.compute(value_name("y", each), number, compute_slowly);
  return made.plan(0);
}

// What takes the time sleeps: what is measured is which of it passes at once.
row graph_overlap(const effort& how) {
  constexpr std::size_t most_rounds = 11;
  constexpr double nanoseconds_per_millisecond = 1e6;
  auto plan = make_plan();
  throttled_link link;
  const auto what = muster::tensor::zeros<float>({});
  const side ours{.name = "scheduled", .once = [&] { return time_of([&] { plan.run(link); }); }};
  const side peer{.name = "blocking sends, then work", .once = [&] {
                    return time_of([&] {
                      for (int tag = 0; tag < messages; ++tag) {
                        static_cast<void>(link.wait(link.isend(what, 1, tag), muster::deadline::never()));
                      }
                      for (int each = 0; each < messages; ++each) compute_slowly(what);
                    });
                  }};
  const effort less{.rounds = std::min(how.rounds, most_rounds), .turn = how.turn};
  auto found = compare("graph_overlap", less, ours, peer, nanoseconds_per_millisecond);
  found.unit = "ms";
  return found;
}

}  // namespace

std::vector<workload> graphs() {
  return {{.name = "graph_overlap", .run = graph_overlap, .needs_two_processors = false}};
}

}  // namespace bench
