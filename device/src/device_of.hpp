// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who works on tensors that do not lie in memory of the host.
//
// Thread safety: pure functions; safe.

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/device/tensor.hpp>

namespace muster::detail {

/// The device of the first of these that is on one; null where all are on the host.
template <class... Tensors>
[[nodiscard]] device_operations* device_of(const Tensors&... tensors) {
  device_operations* found = nullptr;
  for (const auto* each : {&tensors...}) {
    if (found != nullptr || each->storage() == nullptr || each->storage()->on_device() == nullptr) continue;
    found = &each->storage()->on_device()->operations();
  }
  return found;
}

/// The same, for what is done where the elements are. Throws errc::invalid_argument unless that is one place.
[[nodiscard]] inline device_operations* one_device_of(const char* operation, const tensor& to, const tensor& from) {
  if (to.device() == from.device()) return device_of(to);
  throw error(errc::invalid_argument, text(operation, " from ", from.device(), " to ", to.device(),
                                           ": both tensors must be on one device, call to() for one of them"));
}

}  // namespace muster::detail
