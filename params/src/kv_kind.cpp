// SPDX-License-Identifier: BSL-1.0
#include <muster/params/kv_kind.hpp>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

constexpr std::pair<std::string_view, kv_kind> names[] = {{"local", kv_kind::local},
                                                          {"local_update_cpu", kv_kind::local},
                                                          {"local_allreduce_cpu", kv_kind::local},
                                                          {"device", kv_kind::device},
                                                          {"local_allreduce_device", kv_kind::device},
                                                          {"dist", kv_kind::sync},
                                                          {"dist_sync", kv_kind::sync},
                                                          {"dist_device_sync", kv_kind::sync},
                                                          {"dist_sync_device", kv_kind::sync},
                                                          {"dist_async", kv_kind::async},
                                                          {"dist_async_device", kv_kind::async}};

constexpr std::pair<std::string_view, std::string_view> others[] = {
    {"nccl", "use device, or sync on workers with GPUs: NCCL serves where it can"},
    {"p3", "use sync, with priorities"},
    {"horovod", "it is an all-reduce without a store: use muster::group"},
    {"byteps", "it is an all-reduce without a store: use muster::group"}};

}  // namespace

kv_kind kv_kind_of(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char each) { return std::tolower(each); });
  for (const auto& [known, kind] : names) {
    if (known == lower) return kind;
  }
  for (const auto& [known, why] : others) {
    if (known == lower) throw error(errc::invalid_argument, text("a key-value store of type '", name, "': ", why));
  }
  std::string all;
  for (const auto& [known, kind] : names) all += text(all.empty() ? "" : ", ", known);
  throw error(errc::invalid_argument, text("there is no key-value store of type '", name, "'; there are ", all));
}

std::string_view to_string(kv_kind kind) noexcept {
  switch (kind) {
    case kv_kind::local: return "local";
    case kv_kind::device: return "device";
    case kv_kind::sync: return "sync";
    case kv_kind::async: return "async";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, kv_kind kind) { return out << to_string(kind); }

}  // namespace muster
