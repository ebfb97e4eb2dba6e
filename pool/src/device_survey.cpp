// SPDX-License-Identifier: BSL-1.0
#include "device_survey.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view gpu_prefix = "GPU-";
constexpr std::string_view instance_prefix = "MIG-";

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

// The number at the front: CUDA does not look at what is behind it.
std::optional<unsigned> number_at_front(std::string_view text) {
  unsigned number = 0;
  const auto found = std::from_chars(text.data(), text.data() + text.size(), number);
  return found.ec == std::errc() ? std::optional(number) : std::nullopt;
}

enum class entry_kind { index, uuid, instance };

entry_kind kind_of(std::string_view entry) {
  if (entry.starts_with(gpu_prefix)) return entry_kind::uuid;
  return entry.starts_with(instance_prefix) ? entry_kind::instance : entry_kind::index;
}

// Domains may have more than four digits.
bool comes_before(std::string_view one, std::string_view other) {
  return std::pair(one.size(), one) < std::pair(other.size(), other);
}

}  // namespace

device_survey::device_survey(const fs::path& system_root)
    : proc_(system_root / "proc/driver/nvidia/gpus"),
      dev_(system_root / "dev"),
      list_(variable("CUDA_VISIBLE_DEVICES")),
      by_address_(variable("CUDA_DEVICE_ORDER").value_or("PCI_BUS_ID") == "PCI_BUS_ID") {
  look_in_proc();
  if (gpus_.empty()) look_in_dev();
  leave_out_unusable();
  if (list_) {
    show_listed(*list_);
  } else {
    show_all();
  }
}

// ---- what there is

// A folder for each, named by its address, with a file of lines such as "Device Minor: \t 0".
void device_survey::look_in_proc() {
  std::error_code none;
  for (const auto& each : fs::directory_iterator(proc_, none)) {
    gpu found{.address = each.path().filename().string(), .uuid = {}, .minor = {}};
    bool excluded = false;
    std::ifstream in(each.path() / "information");
    for (std::string line; std::getline(in, line);) {
      const auto colon = line.find(':');
      if (colon == std::string::npos) continue;
      const auto key = trimmed(std::string_view(line).substr(0, colon));
      const auto value = trimmed(std::string_view(line).substr(colon + 1));
      if (key == "Device Minor") found.minor = number_at_front(value);
      // Question marks until the device has been used for the first time.
      if (key == "GPU UUID" && value.find('?') == std::string::npos) found.uuid = value;
      if (key == "GPU Excluded") excluded = value == "Yes";
    }
    if (!excluded) gpus_.push_back(std::move(found));
  }
  std::sort(gpus_.begin(), gpus_.end(),
            [](const gpu& one, const gpu& other) { return comes_before(one.address, other.address); });
}

// Some sandboxes have the devices and not what the driver says of them.
void device_survey::look_in_dev() {
  constexpr std::string_view prefix = "nvidia";
  std::error_code none;
  for (const auto& each : fs::directory_iterator(dev_, none)) {
    const auto name = each.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const auto minor = number_at_front(std::string_view(name).substr(prefix.size()));
    if (minor) gpus_.push_back({.address = {}, .uuid = {}, .minor = minor});
  }
  std::sort(gpus_.begin(), gpus_.end(), [](const gpu& one, const gpu& other) { return one.minor < other.minor; });
}

// A container may be told of all devices and have some of them. Where there is not one file CUDA makes them itself.
void device_survey::leave_out_unusable() {
  const auto has_file = [&](const gpu& which) {
    std::error_code none;
    return !which.minor || fs::exists(dev_ / text("nvidia", *which.minor), none);
  };
  if (std::none_of(gpus_.begin(), gpus_.end(), has_file)) return;
  std::erase_if(gpus_, [&](const gpu& which) { return !has_file(which); });
}

// ---- what is shown

void device_survey::show_all() {
  for (std::size_t index = 0; index < gpus_.size(); ++index) shown_.push_back(*find_index(text(index)));
}

// As CUDA reads it: what is behind an entry that names nothing, or in another way than the first, does not count, and
// an entry that is there twice leaves nothing.
void device_survey::show_listed(const std::string& list) {
  const auto first_kind = kind_of(trimmed(list));
  for (std::string_view rest = list; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto entry = trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    auto found = kind_of(entry) == first_kind ? find(entry) : std::nullopt;
    if (!found) return;
    const auto is_same = [&](const found_device& other) { return other.name == found->name; };
    if (std::any_of(shown_.begin(), shown_.end(), is_same)) return shown_.clear();
    shown_.push_back(std::move(*found));
  }
}

std::optional<device_survey::found_device> device_survey::find(const std::string& entry) const {
  switch (kind_of(entry)) {
    case entry_kind::index: return find_index(entry);
    case entry_kind::uuid: return find_uuid(entry);
    case entry_kind::instance: return find_instance(entry);
  }
  return std::nullopt;
}

std::optional<device_survey::found_device> device_survey::find_index(const std::string& entry) const {
  const auto index = number_at_front(entry);
  if (!index || *index >= gpus_.size()) return std::nullopt;
  return found_device{.name = text(*index), .address = by_address_ ? gpus_[*index].address : std::string()};
}

// By its beginning, if that is of one only.
std::optional<device_survey::found_device> device_survey::find_uuid(const std::string& entry) const {
  const auto is_meant = [&](const gpu& which) { return which.uuid.starts_with(entry); };
  const auto is_known = [](const gpu& which) { return !which.uuid.empty(); };
  const auto count = std::count_if(gpus_.begin(), gpus_.end(), is_meant);
  if (count == 1) {
    const auto& meant = *std::find_if(gpus_.begin(), gpus_.end(), is_meant);
    return found_device{.name = meant.uuid, .address = meant.address};
  }
  // What is not known is taken for right: CUDA will say so if it is not.
  if (count > 1 || std::all_of(gpus_.begin(), gpus_.end(), is_known)) return std::nullopt;
  return found_device{.name = entry, .address = {}};
}

// Instances are not in /proc; of old names, MIG-GPU-UUID/1/0, the device is known.
std::optional<device_survey::found_device> device_survey::find_instance(const std::string& entry) const {
  if (gpus_.empty()) return std::nullopt;
  found_device found{.name = entry, .address = {}};
  const auto uuid = entry.substr(instance_prefix.size(), entry.find('/') - instance_prefix.size());
  const auto is_its = [&](const gpu& which) { return !which.uuid.empty() && which.uuid == uuid; };
  const auto where = std::find_if(gpus_.begin(), gpus_.end(), is_its);
  if (where != gpus_.end()) found.address = where->address;
  return found;
}

std::string device_survey::describe() const {
  auto found = gpus_.empty()
                   ? text("there is no GPU: neither ", proc_.string(), " nor ", (dev_ / "nvidia0").string(), " and up")
                   : text("there ", gpus_.size() == 1 ? "is 1 GPU" : text("are ", gpus_.size(), " GPUs"), " (",
                          proc_.string(), ", ", (dev_ / "nvidia*").string(), ')');
  if (list_ && !gpus_.empty()) {
    found +=
        text(", of which CUDA_VISIBLE_DEVICES='", *list_, "' shows ", shown_.empty() ? "none" : text(shown_.size()));
  }
  return found;
}

std::string device_survey::advice() const {
  return gpus_.empty() ? "load the driver, give the container its devices (docker: --gpus all), or leave `devices` out"
                       : "name devices that are there in that variable, unset it, or leave `devices` out";
}

}  // namespace muster::detail
