// SPDX-License-Identifier: BSL-1.0
// A program that serves requests of all kinds for a long time, as a service does: workers are recycled, some crash,
// some requests time out or are given up, each has a label of its own. Between two shifts nothing is left of them: what
// the program holds then is what it held after the first. MUSTER_SOAK_SECONDS makes it longer (scripts/soak).
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/shared_queue.hpp>

#include "processes.hpp"
#include "soak_time.hpp"

namespace muster::service_soak_test {
namespace {

using namespace std::chrono_literals;
using tensors = shared_queue<tensor>;

// ---- what is asked for: a request whose answer is wrong fails the test

void require(bool is_right, const char* what) {
  if (!is_right) ADD_FAILURE() << what;
}

std::string shout(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char each) { return static_cast<char>(each - 32); });
  return text;
}
int square(int x) { return x * x; }
tensor doubled(const tensor& given) {
  const auto made = given.clone();
  for (auto& each : made.span<float>()) each *= 2;
  return made;
}
int crash(int) {
  ::raise(SIGKILL);
  return 0;
}
int sleep_for_ever(int) {
  for (;;) ::pause();
}
void relay(const tensors& in, const tensors& out) {
  while (const auto each = in.pop()) out.push(*each);
}

void ask_small_things(pool& of, unsigned number) {
  const auto labelled = of.with({.retries = 10, .label = "request " + std::to_string(number)});
  require(labelled.apply(shout, std::string("service")) == "SERVICE", "apply");
  require(labelled.apply_async(square, 7).then([](int found) { return found + 1; }).get() == 50, "then");
}
void ask_for_many(pool& of, unsigned) {
  std::vector<int> numbers(200);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto patient = of.with({.retries = 10});
  require(patient.map(square, numbers).back() == 199 * 199, "map");
  int sum = 0;
  for (const int each : patient.imap_unordered(square, numbers)) sum += each;
  require(sum == 199 * 200 * 399 / 6, "imap");
}
void ask_for_tensors(pool& of, unsigned number) {
  const auto given = tensor::full<float>({1 + number % 100'000}, 1.5F);
  require(of.with({.retries = 10}).apply(doubled, given).at<float>(number % 100'000) == 3.0F, "tensor");
}
void ask_in_vain(pool& of, unsigned number) {
  if (number % 3 == 0) require(of.apply_async(crash, 1).get_result().error() == errc::worker_died, "crash");
  if (number % 3 == 1) {
    const auto late = of.with({.timeout = 1ms}).apply_async(sleep_for_ever, 1).get_result();
    require(late.error() == errc::timed_out, "timeout");
  }
  if (number % 3 == 2) of.apply_async(square, 3).cancel();
}
void ask_through_a_queue(pool& of, unsigned) {
  const tensors in(2);
  const tensors out(2);
  auto done = of.with({.retries = 10}).apply_async(relay, in, out);
  in.push(tensor::ones<float>({5000}));
  require(out.pop()->size() == 5000, "queue");
  in.close();
  done.get();
}

// ---- what the program holds

struct footprint {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t shared_bytes = 0;  // of the arena, in use
  std::size_t private_kib = 0;

  friend std::ostream& operator<<(std::ostream& out, const footprint& what) {
    return out << what.descriptors << " descriptors, " << what.threads << " threads, " << what.shared_bytes / 1024
               << " KiB of shared and " << what.private_kib << " KiB of private memory";
  }
};

footprint larger(const footprint& a, const footprint& b) {
  return {.descriptors = std::max(a.descriptors, b.descriptors),
          .threads = std::max(a.threads, b.threads),
          .shared_bytes = std::max(a.shared_bytes, b.shared_bytes),
          .private_kib = std::max(a.private_kib, b.private_kib)};
}

std::size_t entries_in(const char* directory) {
  const std::filesystem::directory_iterator all(directory);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
std::size_t private_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoul(line.substr(line.find_first_of("0123456789")));
  }
  return 0;
}
footprint footprint_of(domain& shared) {
  const auto memory = shared.blocks().read_statistics();
  return {.descriptors = entries_in("/proc/self/fd"),
          .threads = entries_in("/proc/self/task"),
          .shared_bytes = memory.held_bytes - memory.cached_bytes,
          .private_kib = private_memory()};
}

// ---- the service

class Service : public testing::Test {
protected:
  void work_one_shift(unsigned requests) {
    std::vector<std::thread> clients;
    for (unsigned client = 0; client < 3; ++client) {
      clients.emplace_back([this, client, requests] {
        constexpr std::array ways = {ask_small_things, ask_for_many, ask_for_tensors, ask_in_vain, ask_through_a_queue};
        for (unsigned each = 0; each < requests; ++each) {
          const auto number = first_ + 3 * each + client;
          ways[(each + client) % ways.size()](pool_, number);
        }
      });
    }
    for (auto& each : clients) each.join();
    first_ += 3 * requests;
  }

  // Once the workers that are being replaced have been, and what the dead had has been freed. How many small blocks
  // were there at once is a matter of chance, and their memory is kept.
  bool is_within(const footprint& wanted) {
    constexpr std::size_t some = 16 * extent_bytes;
    constexpr std::size_t of_successors = 2 * 2;  // of each worker one may stand by, with a pidfd and a socket
    return test::eventually([&] {
      const auto now = footprint_of(*domain_);
      return now.descriptors <= wanted.descriptors + of_successors && now.threads <= wanted.threads &&
             now.shared_bytes <= wanted.shared_bytes + some;
    });
  }
  [[nodiscard]] bool is_at_rest() const {
    return test::eventually([&] {
      const auto all = pool_.workers();
      return pool_.stats().pending == 0 && std::all_of(all.begin(), all.end(), [](const auto& each) {
               return each.state == worker_lifecycle::state::working;
             });
    });
  }

  const std::shared_ptr<domain> domain_ = domain::of_program();
  pool pool_{
      {.workers = 2, .max_tasks_per_worker = 300, .quarantine_after = 0, .log = [](log_level, std::string_view) {}}};
  unsigned first_ = 0;
};

TEST_F(Service, SoakLeavesNothingBehindBetweenShifts) {
  const auto time = test::soak_time(0s);
  const unsigned requests = time > 0s ? 500 : 30;
  footprint first;
  for (int shift = 0; shift < 2; ++shift) {  // they make what stays: threads, caches
    work_one_shift(requests);
    ASSERT_TRUE(is_at_rest());
    first = larger(first, footprint_of(*domain_));
  }
  const auto until = deadline::after(time);
  unsigned shifts = 2;
  for (; shifts < 5 || !until.expired(); ++shifts) {
    work_one_shift(requests);
    ASSERT_TRUE(is_at_rest());
    ASSERT_TRUE(is_within(first)) << "after " << shifts + 1 << " shifts " << footprint_of(*domain_)
                                  << "; after the first " << first;
  }
  const auto last = footprint_of(*domain_);
  std::cout << shifts << " shifts of " << 3 * requests << " requests; after the first " << first << "; after the last "
            << last << '\n';
  if (time > 0s) {
    EXPECT_LT(last.private_kib, first.private_kib + 8192 + first.private_kib / 4);
  }
}

}  // namespace
}  // namespace muster::service_soak_test
