// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/device_transport.hpp>

#include <array>
#include <atomic>

namespace muster {

namespace {

// As the kinds of devices themselves (device_block.cpp): one library of a kind, constant before anything runs.
constinit std::array<std::atomic<device_transport*>, 2> transports{};

std::atomic<device_transport*>& entry_of(device::kind which) { return transports.at(static_cast<std::size_t>(which)); }

}  // namespace

device_transport* transport_of(device::kind which) noexcept { return entry_of(which).load(std::memory_order_acquire); }

namespace detail {

device_transport_entry::device_transport_entry(device::kind which, device_transport& what) noexcept : which_(which) {
  entry_of(which).store(&what, std::memory_order_release);
}

device_transport_entry::~device_transport_entry() { entry_of(which_).store(nullptr, std::memory_order_release); }

}  // namespace detail

}  // namespace muster
