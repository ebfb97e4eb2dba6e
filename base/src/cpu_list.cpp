// SPDX-License-Identifier: BSL-1.0
#include <muster/base/cpu_list.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <exception>
#include <memory>

#include <muster/base/error.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

constexpr unsigned most_cpus = 1U << 20U;

/// A set as the kernel wants it.
class cpu_mask {
public:
  explicit cpu_mask(std::size_t cpus) : words_(CPU_ALLOC_SIZE(cpus) / sizeof(cpu_set_t) + 1) {}

  [[nodiscard]] std::size_t bytes() const noexcept { return words_.size() * sizeof(cpu_set_t); }
  [[nodiscard]] cpu_set_t* get() noexcept { return words_.data(); }
  void add(unsigned cpu) noexcept { CPU_SET_S(cpu, bytes(), get()); }
  [[nodiscard]] cpu_list list() {
    cpu_list found;
    for (unsigned cpu = 0; cpu < bytes() * 8; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes(), get())) found.push_back(cpu);
    }
    return found;
  }

private:
  std::vector<cpu_set_t> words_;
};

void set_affinity(const cpu_list& cpus) {
  cpu_mask mask(cpus.empty() ? 1 : cpus.back() + std::size_t{1});
  for (const auto cpu : cpus) mask.add(cpu);
  system_call("sched_setaffinity", ::sched_setaffinity, 0, mask.bytes(), mask.get());
}

cpu_list affinity_of(pid_t thread) {
  for (std::size_t cpus = 1024; cpus < most_cpus; cpus *= 2) {  // the kernel's mask may be larger
    cpu_mask mask(cpus);
    if (::sched_getaffinity(thread, mask.bytes(), mask.get()) == 0) return mask.list();
  }
  cpu_mask mask(most_cpus);
  system_call("sched_getaffinity", ::sched_getaffinity, thread, mask.bytes(), mask.get());
  return mask.list();
}

// Readers may have the list of an earlier call, so that none is freed: there is one for each process that calls init.
struct noted_cpus {
  cpu_list cpus;
  const noted_cpus* before;
};
constinit std::atomic<const noted_cpus*> noted = nullptr;

// The number at the front of `text`, which it is taken from.
std::optional<unsigned> take_number(std::string_view& text) {
  unsigned number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || number >= most_cpus) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::optional<cpu_list> parse_cpu_list(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  cpu_list cpus;
  while (!text.empty()) {
    const auto first = take_number(text);
    auto last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_number(text);
    }
    const bool goes_on = text.starts_with(',') && text.size() > 1;
    if (!first || !last || *last < *first || (!text.empty() && !goes_on)) return std::nullopt;
    for (auto cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (goes_on) text.remove_prefix(1);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string describe(const cpu_list& cpus) {
  std::string all;
  for (std::size_t begin = 0; begin < cpus.size();) {
    auto end = begin + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    all += all.empty() ? "" : ",";
    all += end - begin == 1 ? text(cpus[begin]) : text(cpus[begin], '-', cpus[end - 1]);
    begin = end;
  }
  return all;
}

cpu_list allowed_cpus() { return affinity_of(0); }

// The number of the process is that of its main thread.
cpu_list process_cpus() {
  const auto* const found = noted.load(std::memory_order_acquire);
  return found != nullptr ? found->cpus : affinity_of(::getpid());
}

void detail::note_process_cpus() noexcept {
  try {
    const auto* before = noted.load(std::memory_order_acquire);
    auto made = std::make_unique<noted_cpus>(noted_cpus{.cpus = affinity_of(::getpid()), .before = before});
    noted.store(made.release(), std::memory_order_release);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it is asked again when it is needed
  }
}

void detail::run_where_process_may() noexcept {
  try {
    const auto all = process_cpus();
    if (allowed_cpus() != all) set_affinity(all);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): they have been taken from the program meanwhile
  }
}

affinity_scope::affinity_scope(const cpu_list& cpus) : before_(allowed_cpus()) { set_affinity(cpus); }

affinity_scope::~affinity_scope() {
  try {
    set_affinity(before_);
  } catch (const error&) {  // NOLINT(bugprone-empty-catch)
    // They have been taken from the program meanwhile: then it runs where it was put.
  }
}

}  // namespace muster
