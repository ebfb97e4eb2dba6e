// SPDX-License-Identifier: BSL-1.0
#include "device_anchor.hpp"

#include <new>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::uint64_t lost_bits = descriptor_exchange::dead_count | device_anchor::broken_count;

std::string described(const device_promise& what) {
  return text("memory of ", what.where, ", ", text_of_bytes(what.bytes), ", that process ", what.owner, " has sent");
}

}  // namespace

// Acquire: what the owner has written before, its host sees then; the device is ordered by its stream.
bool is_there(const device_anchor& anchor, std::uint64_t count) noexcept {
  return (anchor.reached.load(std::memory_order_acquire) & ~lost_bits) >= count;
}

bool never_comes(const device_anchor& anchor, std::uint64_t count) noexcept {
  const auto reached = anchor.reached.load(std::memory_order_acquire);
  return (reached & lost_bits) != 0 && (reached & ~lost_bits) < count;
}

void throw_lost(const device_anchor& anchor, const device_promise& what) {
  const bool is_broken = (anchor.reached.load(std::memory_order_acquire) & device_anchor::broken_count) != 0;
  throw error(errc::peer_lost, text(described(what), " was not finished when ",
                                    is_broken ? "the context of that process broke" : "that process died",
                                    ": it holds nothing of use, nor does what was computed from it; make it again"));
}

void throw_gone(const device_promise& what, const char* cause) {
  throw error(errc::peer_lost,
              text(described(what), " is gone: ", cause,
                   ", and on this machine, whose driver exports no memory by "
                   "descriptor, it is there no longer than its owner. Keep that process until nobody needs what it has "
                   "made, copy what is to outlive it (clone(), to()), or send copies (transfer::copy)"));
}

shared_block new_anchor() {
  auto made = domain::of_program()->blocks().allocate_shared(page_bytes);
  new (made.data()) device_anchor{};
  return made;
}

registered_anchor::registered_anchor(const cuda_driver& driver, shared_block block)
    : driver_(driver), domain_(domain::of(block)), block_(std::move(block)) {
  driver.host_register(block_.data(), page_bytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
  if (const auto result = driver.host_device_pointer.attempt(&address_, block_.data(), 0); result != CUDA_SUCCESS) {
    static_cast<void>(driver.host_unregister.attempt(block_.data()));
    driver.host_device_pointer(&address_, block_.data(), 0);
  }
}

registered_anchor::~registered_anchor() { static_cast<void>(driver_.host_unregister.attempt(block_.data())); }

}  // namespace muster::detail
