// SPDX-License-Identifier: BSL-1.0
#include <malloc.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <fstream>
#include <new>
#include <thread>

#include <muster/base/system_call.hpp>

#include "workloads.hpp"

namespace {

// Both this process and its workers count: they run the same program.
std::atomic<std::uint64_t> allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const made = alignment <= alignof(std::max_align_t)
                         ? std::malloc(bytes)
                         : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, std::size_t) noexcept { std::free(made); }
void operator delete(void* made, std::align_val_t) noexcept { std::free(made); }
void operator delete(void* made, std::size_t, std::align_val_t) noexcept { std::free(made); }

namespace bench {

namespace {

int add(int a, int b) { return a + b; }
std::uint64_t count_of_worker() { return allocations.load(); }

double cpu_seconds(pid_t process) {
  clockid_t clock{};
  if (::clock_getcpuclockid(process, &clock) != 0) std::abort();
  timespec used{};
  muster::system_call("clock_gettime", ::clock_gettime, clock, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

double cpu_seconds(const muster::pool& pool) {
  double all = cpu_seconds(::getpid());
  for (const auto& each : pool.workers()) all += cpu_seconds(each.pid);
  return all;
}

row idle_cpu(const effort& how) {
  const auto watched = std::chrono::milliseconds(how.rounds > 3 ? 5000 : 500);
  const muster::pool pool({.workers = 8});
  for (int each = 0; each < 100; ++each) pool.apply(add, each, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // what is left over of it has ended
  const double before = cpu_seconds(pool);
  std::this_thread::sleep_for(watched);
  const double used = cpu_seconds(pool) - before;
  return amount("idle_cpu", "CPUs", used / std::chrono::duration<double>(watched).count(), 0.001);
}

double private_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/smaps_rollup");
  double kibibytes = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Private_")) kibibytes += std::stod(line.substr(line.find(':') + 1));
  }
  return kibibytes * 1024;
}

row worker_rss(const effort&) {
  const muster::pool pool({.workers = 2});
  for (int each = 0; each < 100; ++each) pool.apply(add, each, 1);
  return amount("worker_rss", "bytes", private_bytes(pool.workers().front().pid), 4 << 20U);
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// All that the process grows by, futures included, while a million tasks wait behind one that does not end.
row pending_bytes(const effort& how) {
  const std::size_t tasks = how.rounds > 3 ? 1'000'000 : 100'000;
  muster::pool pool({.workers = 1});
  auto first = pool.apply_async([] {
    for (;;) ::pause();
  });
  ::malloc_trim(0);
  const double before = resident_bytes();
  std::vector<muster::future<int>> pending;
  pending.reserve(tasks);
  for (std::size_t index = 0; index < tasks; ++index) {
    pending.push_back(pool.apply_async(add, static_cast<int>(index), 1));
  }
  const double each = (resident_bytes() - before) / static_cast<double>(tasks);
  pool.terminate();
  return amount("pending_bytes", "bytes", each, 256);
}

// In both processes, per warm apply_async and get.
row allocs_per_task(const effort&) {
  constexpr int tasks = 10'000;
  const muster::pool pool({.workers = 1});
  for (int each = 0; each < 1000; ++each) pool.apply(add, each, 1);
  const auto by_worker = pool.apply(count_of_worker);
  const auto before = allocations.load();
  for (int each = 0; each < tasks; ++each) pool.apply_async(add, each, 1).get();
  const auto by_parent = allocations.load() - before;
  const auto all = by_parent + pool.apply(count_of_worker) - by_worker;
  auto found = amount("allocs_per_task", "allocations", static_cast<double>(all) / tasks, 0);
  found.ratio = found.value;  // there is nothing to divide by
  return found;
}

}  // namespace

std::vector<workload> costs() {
  return {{.name = "idle_cpu", .run = idle_cpu, .needs_two_processors = false},
          {.name = "worker_rss", .run = worker_rss, .needs_two_processors = false},
          {.name = "pending_bytes", .run = pending_bytes, .needs_two_processors = false},
          {.name = "allocs_per_task", .run = allocs_per_task, .needs_two_processors = false}};
}

}  // namespace bench
