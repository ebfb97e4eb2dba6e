// SPDX-License-Identifier: BSL-1.0
// How times grow with workers, tasks, elements, bytes, queues, groups and ranks (scripts/bench --scale). Each size is
// tried some times, and the median counts. What has no room in memory is left out.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <vector>

#include <CLI/CLI.hpp>

#include <muster/base/memory_budget.hpp>
#include <muster/collectives/group_ticket.hpp>
#include <muster/device/tensor.hpp>
#include <muster/parallel/world.hpp>
#include <muster/pool/pool.hpp>
#include <muster/process/init.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/shared_queue.hpp>

#include "comparison.hpp"
#include "group_ranks.hpp"
#include "growth_report.hpp"

namespace growth {
namespace {

int tries = 5;
bool quick = false;

double seconds_of(const std::function<void()>& what) {
  return std::chrono::duration<double>(bench::time_of(what)).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double median_of(int count, const std::function<double()>& once) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (auto& each : values) each = once();
  return median(std::move(values));
}

bool has_room(double bytes) { return bytes * 1.3 < static_cast<double>(muster::available_memory().available_bytes); }

// The work takes so many bytes for each of a size; sizes for which there is no room are left out.
series grow(const std::string& name, const std::vector<std::size_t>& sizes, double bytes_each,
            const std::function<double(std::size_t)>& seconds) {
  series found{.name = name};
  for (const auto size : sizes) {
    if (quick && found.points.size() == 3) break;
    if (!has_room(static_cast<double>(size) * bytes_each)) break;
    found.points.push_back({.size = static_cast<double>(size), .seconds = seconds(size)});
    std::printf("%-44s %12zu  %.3g s\n", name.c_str(), size, found.points.back().seconds);
    std::fflush(stdout);
  }
  return found;
}

const std::vector<std::size_t> worker_counts{1, 4, 16, 64, 256, 1000};

muster::pool_options workers(std::size_t count) { return {.workers = static_cast<unsigned>(count)}; }

int add(int a, int b) { return a + b; }

series starts() {
  constexpr double bytes_each = 2e6;
  return grow("start n workers", worker_counts, bytes_each, [](std::size_t count) {
    return median_of(count < 256 ? tries : 1,
                     [&] { return seconds_of([&] { const muster::pool made(workers(count)); }); });
  });
}

series calls() {
  constexpr double bytes_each = 2e6;
  return grow("a call beside n idle workers", worker_counts, bytes_each, [](std::size_t count) {
    const muster::pool pool(workers(count));
    for (int warm = 0; warm < 2000; ++warm) pool.apply(add, warm, 1);
    return median_of(10000, [&] { return seconds_of([&] { pool.apply(add, 2, 3); }); });
  });
}

series tasks() {
  constexpr double bytes_each = 600;
  return grow("n tasks under way, with their results", {1000, 10'000, 100'000, 1'000'000, 10'000'000}, bytes_each,
              [](std::size_t count) {
                const muster::pool pool(workers(1));
                pool.apply(add, 1, 2);
                return median_of(count < 1'000'000 ? tries : 1, [&] {
                  return seconds_of([&] {
                    std::vector<muster::future<int>> all;
                    all.reserve(count);
                    for (std::size_t each = 0; each < count; ++each) all.push_back(pool.apply_async(add, 2, 3));
                    for (auto& each : all) each.get();
                  });
                });
              });
}

series maps() {
  constexpr double bytes_each = 16;
  return grow("map of n ints", {100'000, 1'000'000, 10'000'000, 100'000'000}, bytes_each, [](std::size_t count) {
    const muster::pool pool(workers(2));
    const std::vector<int> input(count, 1);
    return median_of(tries, [&] {
      return seconds_of([&] {
        if (pool.map([](int x) { return x + 1; }, input).size() != count) std::abort();
      });
    });
  });
}

const std::vector<std::size_t> byte_counts{64,
                                           4096,
                                           std::size_t{1} << 16U,
                                           std::size_t{1} << 20U,
                                           std::size_t{1} << 24U,
                                           std::size_t{1} << 28U,
                                           std::size_t{1} << 30U,
                                           std::size_t{1} << 32U};

std::size_t size_of(const std::vector<char>& given) { return given.size(); }

series copies() {
  constexpr double copies_in_memory = 3;  // here, on the way, and there
  return grow("a call with n bytes by value", byte_counts, copies_in_memory, [](std::size_t bytes) {
    const std::size_t kept = std::size_t{2} << 30U;
    const muster::pool pool({.workers = 1, .worker_heap_bytes = kept});
    const std::vector<char> payload(bytes, 'x');
    pool.apply(size_of, payload);
    const int times = bytes < (std::size_t{1} << 24U) ? 1000 : tries;
    return median_of(times, [&] {
      return seconds_of([&] {
        if (pool.apply(size_of, payload) != bytes) std::abort();
      });
    });
  });
}

series tensors() {
  return grow("a call with a tensor of n bytes", byte_counts, 2, [](std::size_t bytes) {
    const muster::pool pool(workers(1));
    const auto sent = muster::tensor::ones<std::uint8_t>({bytes});
    const auto size = [](const muster::tensor& given) { return given.size(); };
    pool.apply(size, sent);
    return median_of(1000, [&] {
      return seconds_of([&] {
        if (pool.apply(size, sent) != bytes) std::abort();
      });
    });
  });
}

template <class Make>
series makings(const std::string& name, double bytes_each, Make make) {
  return grow(name, {10, 100, 1000, 10'000}, bytes_each, [make](std::size_t count) {
    const muster::event first;
    return median_of(tries, [&] {
      std::vector<decltype(make())> kept;
      kept.reserve(count);
      return seconds_of([&] {
        for (std::size_t each = 0; each < count; ++each) kept.push_back(make());
      });
    });
  });
}

series ranks(const std::string& name, bench::rank_operation what, std::size_t bytes) {
  constexpr double bytes_each = 4e6;
  return grow(name, {2, 4, 8, 16, 32, 64}, bytes_each, [=](std::size_t count) {
    bench::group_ranks group(count);
    constexpr std::size_t times = 50;
    return median_of(tries, [&] {
      const auto took = group.run({.operation = what, .bytes = bytes, .count = times});
      return std::chrono::duration<double>(took).count() / times;
    });
  });
}

void nothing() {}

series world_calls() {
  constexpr double bytes_each = 4e6;
  return grow("a call of a world of n ranks", {2, 4, 8, 16, 32, 64}, bytes_each, [](std::size_t count) {
    muster::world world({.ranks = static_cast<unsigned>(count)});
    const auto call = world.function(nothing);
    call();
    return median_of(200, [&] { return seconds_of([&] { call(); }); });
  });
}

std::vector<series> all_series() {
  constexpr double queue_bytes = 128 << 10;
  constexpr double group_bytes = 64 << 10;
  return {starts(),
          calls(),
          tasks(),
          maps(),
          copies(),
          tensors(),
          makings("make n queues of 1024 ints", queue_bytes, [] { return muster::shared_queue<int>(1024); }),
          makings("make n groups of two", group_bytes, [] { return muster::group_ticket(2); }),
          ranks("a barrier of n ranks", bench::rank_operation::barrier, 0),
          ranks("all_reduce of 64 KiB, n ranks", bench::rank_operation::all_reduce, std::size_t{64} << 10U),
          world_calls()};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  out.close();
  if (out) return;
  std::fprintf(stderr, "cannot write %s\n", path.c_str());
  std::exit(EXIT_FAILURE);
}

}  // namespace
}  // namespace growth

int main(int argc, char** argv) {
  muster::init(argc, argv);
  CLI::App app("Measures how times grow with workers, tasks, elements, bytes, queues, groups and ranks.");
  std::string svg = "scale.svg";
  std::string markdown = "scale.md";
  app.add_option("--svg", svg, "Write the picture to this file")->capture_default_str();
  app.add_option("--markdown", markdown, "Write the table to this file")->capture_default_str();
  app.add_flag("--quick", growth::quick, "The three smallest sizes: to see that it works");
  CLI11_PARSE(app, argc, argv);
  const auto all = growth::all_series();
  growth::write(svg, growth::to_svg(all, bench::describe_machine()));
  growth::write(markdown, growth::to_markdown(all, bench::describe_machine()));
  return EXIT_SUCCESS;
}
