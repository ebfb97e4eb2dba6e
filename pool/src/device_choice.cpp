// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/device_choice.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "device_survey.hpp"
#include "near_cpus.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& what) {
  throw error(errc::invalid_argument, text("pool_options::devices: ", what));
}

std::vector<device> each_once(const std::vector<device>& these) {
  std::vector<device> found;
  for (const auto each : these) {
    if (std::find(found.begin(), found.end(), each) == found.end()) found.push_back(each);
  }
  return found;
}

std::vector<device> every_device(const detail::device_survey& machine) {
  if (machine.shown().empty()) {
    refuse(text("all devices were asked for, and ", machine.describe(), ": ", machine.advice()));
  }
  std::vector<device> found;
  found.reserve(machine.shown().size());
  for (std::size_t index = 0; index < machine.shown().size(); ++index) {
    found.push_back(device::cuda(static_cast<std::uint16_t>(index)));
  }
  return found;
}

void require(device which, const detail::device_survey& machine) {
  const auto count = machine.shown().size();
  if (which.index() < count) return;
  const auto possible = count == 0   ? machine.advice()
                        : count == 1 ? "possible is cuda:0"
                                     : text("possible are cuda:0 to cuda:", count - 1);
  refuse(text(which, " was asked for, and ", machine.describe(), ": ", possible));
}

// Its own first, then those behind it, then those before it.
std::string visible_to(device own, const std::vector<device>& peers, const detail::device_survey& machine) {
  const auto first = static_cast<std::size_t>(std::find(peers.begin(), peers.end(), own) - peers.begin());
  std::string list;
  for (std::size_t step = 0; step < peers.size(); ++step) {
    if (step != 0) list += ',';
    list += machine.shown()[peers[(first + step) % peers.size()].index()].name;
  }
  return list;
}

// None, if they are all that the program may use: that needs no saying.
cpu_list usable_near(const std::string& address, const fs::path& system_root) {
  if (address.empty()) return {};
  const auto allowed = process_cpus();
  auto near = detail::in_both(detail::cpus_near(system_root, address).value_or(cpu_list()), allowed);
  if (near == allowed) near.clear();
  return near;
}

}  // namespace

device_choice::device_choice(std::vector<device> these) : these_(std::move(these)) {
  if (these_.empty()) {
    refuse(
        "an empty list was given: name at least one device, or use device_choice::automatic() for all, or {} for none");
  }
  if (std::any_of(these_.begin(), these_.end(), [](device each) { return each.is_cpu(); })) {
    refuse("cpu was given, to which nobody is pinned: pool_options::pin is for processors");
  }
}

device_choice device_choice::automatic() {
  device_choice all;
  all.automatic_ = true;
  return all;
}

device_choice device_choice::on_machine(std::string system_root) const {
  auto there = *this;
  there.system_root_ = std::move(system_root);
  return there;
}

device_choice device_choice::choosing(std::vector<device> these, std::vector<device> seen) const {
  auto chosen = device_choice(std::move(these)).on_machine(system_root_);
  chosen.seen_ = std::move(seen);
  return chosen;
}

std::vector<device_assignment> device_choice::resolve() const {
  if (!automatic_ && these_.empty()) return {};
  const detail::device_survey machine(system_root_);
  const auto chosen = automatic_ ? every_device(machine) : these_;
  auto all = chosen;
  all.insert(all.end(), seen_.begin(), seen_.end());
  const auto peers = each_once(all);
  for (const auto each : peers) require(each, machine);
  std::vector<device_assignment> assignments;
  for (const auto each : chosen) {
    device_assignment made{.device = each};
    made.environment.push_back("CUDA_VISIBLE_DEVICES=" + visible_to(each, peers, machine));
    if (std::getenv("CUDA_DEVICE_ORDER") == nullptr) made.environment.emplace_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
    made.cpus = usable_near(machine.shown()[each.index()].address, system_root_);
    assignments.push_back(std::move(made));
  }
  return assignments;
}

}  // namespace muster
