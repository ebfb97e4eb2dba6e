// SPDX-License-Identifier: BSL-1.0
#include "nccl_transport.hpp"

#include <muster/base/text.hpp>
#include <muster/cuda/cuda_device.hpp>

#include "nccl_channel.hpp"
#include "nccl_offer.hpp"

// Named by the link line of whoever links muster::nccl, so that this file, and the entry below, are in the program.
extern "C" {
extern const int muster_nccl_is_linked;
const int muster_nccl_is_linked = 1;
}

namespace muster::detail {

namespace {

nccl_transport the_transport;
const device_transport_entry entry(device::kind::cuda, the_transport);

}  // namespace

std::shared_ptr<const nccl_library> nccl_transport::library() {
  const scoped_lock lock(mutex_);
  if (library_ == nullptr) library_ = nccl_library::load();
  return library_;
}

bool nccl_transport::reduces(dtype type, reduction_op op) const noexcept { return nccl_reduces(type, op); }

std::vector<std::byte> nccl_transport::offer(device where, std::size_t rank) {
  const auto on = cuda_device::open(where);
  const cuda_device::scope current(*on);
  return nccl_offer::of(*library(), *on, rank).pack();
}

std::unique_ptr<device_channel> nccl_transport::join(std::span<const std::vector<std::byte>> offers, device where,
                                                     std::size_t rank) {
  const auto all = unpack_all(offers);
  return std::make_unique<nccl_channel>(library(), cuda_device::open(where), all.front().id, rank, all.size());
}

std::string nccl_transport::name() { return text("NCCL ", nccl_library::version_text(library()->version_number())); }

}  // namespace muster::detail
