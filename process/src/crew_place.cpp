// SPDX-License-Identifier: BSL-1.0
// Where a crew's workers belong, by their index: to devices and processors; and what they are called for that.
#include <algorithm>

#include <muster/base/text.hpp>

#include "crew_impl.hpp"
#include "spawn.hpp"

namespace muster {

const device_assignment& crew::impl::assignment_of(std::size_t index) const {
  static const device_assignment none;
  return options_.devices.empty() ? none : options_.devices[index % options_.devices.size()];
}

const cpu_list& crew::impl::cpus_of(std::size_t index) const {
  return options_.cpus.empty() ? assignment_of(index).cpus : options_.cpus[index % options_.cpus.size()];
}

// Workers on the same processors share them.
unsigned crew::impl::threads_of(std::size_t index) const {
  const auto usable = supervisor_.spin().processors;
  const auto& cpus = cpus_of(index);
  if (cpus.empty()) return std::max(1U, usable / static_cast<unsigned>(size_));
  unsigned sharing = 0;
  for (std::size_t other = 0; other < size_; ++other) sharing += cpus_of(other) == cpus ? 1U : 0U;
  return std::max(1U, std::min(static_cast<unsigned>(cpus.size()), usable) / std::max(1U, sharing));
}

// What a thread starts may run where the thread may.
detail::child crew::impl::execute(std::size_t index, detail::spawn_request request) const {
  request.own_group = options_.own_groups;
  request.threads_each = threads_of(index);
  const auto& cpus = cpus_of(index);
  if (cpus.empty()) return detail::spawn_worker(request);
  const affinity_scope bound(cpus);
  return detail::spawn_worker(request);
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
