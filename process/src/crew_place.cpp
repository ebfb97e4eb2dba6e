// SPDX-License-Identifier: BSL-1.0
// Where a crew's workers belong, by their index: to devices and processors; and what they are called for that.
#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "crew_impl.hpp"
#include "spawn.hpp"

namespace muster {

namespace {

// False when none of the processors may be used: they have been taken from the program.
bool try_to_bind(std::optional<affinity_scope>& thread, const cpu_list& cpus) {
  try {
    thread.emplace(cpus);
    return true;
  } catch (const error& failure) {
    if (failure.code() != std::errc::invalid_argument) throw;
    return false;
  }
}

}  // namespace

const device_assignment& crew::impl::assignment_of(std::size_t index) const {
  static const device_assignment none;
  return options_.devices.empty() ? none : options_.devices[index % options_.devices.size()];
}

const cpu_list& crew::impl::cpus_of(std::size_t index) const {
  return options_.cpus.empty() ? assignment_of(index).cpus : options_.cpus[index % options_.cpus.size()];
}

// Workers on the same processors share them.
unsigned crew::impl::threads_of(std::size_t index) const {
  const auto usable = board_.spin().processors;
  const auto& cpus = cpus_of(index);
  if (cpus.empty()) return std::max(1U, usable / static_cast<unsigned>(size_));
  unsigned sharing = 0;
  for (std::size_t other = 0; other < size_; ++other) sharing += cpus_of(other) == cpus ? 1U : 0U;
  return std::max(1U, std::min(static_cast<unsigned>(cpus.size()), usable) / std::max(1U, sharing));
}

// What a thread starts may run where the thread may: what is not bound runs where the supervisor's does, which is where
// the process may, whichever thread has made the pool. So it gets the processors, too, that the program gets later.
detail::child crew::impl::execute(std::size_t index, detail::spawn_request request) {
  request.own_group = options_.own_groups;
  request.threads_each = threads_of(index);
  const auto& cpus = cpus_of(index);
  std::optional<affinity_scope> thread;
  if (!cpus.empty() && !try_to_bind(thread, cpus)) tell_that_unbound(index);
  return detail::spawn_worker(request);
}

void crew::impl::tell_that_unbound(std::size_t index) {
  if (std::exchange(told_that_unbound_, true)) return;
  log(log_level::warning,
      text(name_of(index), " cannot be bound to processors ", describe(cpus_of(index)),
           ", which have been taken from this program: it runs where it may (the program may use ",
           describe(process_cpus()), "), and so will others whose processors are gone, without a further message"));
}

std::string crew::impl::name_of(std::size_t index) const {
  const auto name = text("worker ", index, " of '", options_.name, '\'');
  const auto& device = assignment_of(index).device;
  return device.is_cpu() ? name : text(name, " on ", device);
}

// Of a crew without devices all workers are alike: which of them failed says nothing.
error_info crew::impl::with_name(std::size_t index, const error_info& why) const {
  if (options_.devices.empty()) return why;
  error_info named(why.code(), text(name_of(index), ": ", why.message()));
  named.set_words(why.words());
  return named;
}

}  // namespace muster
