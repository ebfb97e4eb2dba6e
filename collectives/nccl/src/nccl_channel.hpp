// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <nccl.h>

#include <muster/collectives/device_transport.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/stream.hpp>
#include <muster/nccl/nccl_library.hpp>

namespace muster::detail {

/// A communicator of NCCL that never blocks, and the stream that it works on.
///
/// Works as follows. NCCL's calls return at once; a call has been made when the communicator is not in progress any
/// more, and only then is what it gives in the stream. The stream waits for what the device's compute stream had been
/// given before, and is one of its own, so that asynchronous collectives go on beside computing, and what never ends
/// holds up nothing else. An event behind tells when it has been done.
///
/// Communicators are ended on a thread of their own: NCCL may wait for its own threads, and for other ranks, for ever.
/// Who waits has some seconds of patience; then thread, communicator and memory are left to themselves.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class nccl_channel final : public device_channel {
public:
  nccl_channel(std::shared_ptr<const nccl_library> library, std::shared_ptr<cuda_device> on, const ncclUniqueId& id,
               std::size_t rank, std::size_t size);
  ~nccl_channel() override { abort(); }

  void launch(std::span<const device_step> steps, std::vector<tensor> kept) override;
  [[nodiscard]] bool is_done() override;
  void abort() noexcept override;
  void close() noexcept override;

private:
  // What NCCL and the device use until all has ended.
  struct parts {
    parts(std::shared_ptr<const nccl_library> with, std::shared_ptr<cuda_device> where);

    const std::shared_ptr<const nccl_library> library;
    const std::shared_ptr<cuda_device> on;
    cuda_stream stream;
    cuda_event before;  // in the compute stream
    cuda_event behind;  // in that one
    ncclComm_t communicator = nullptr;
    std::vector<tensor> kept;
    std::shared_ptr<parts> self;  // from when it is to end until it has: without a thread for that it stays for ever
  };

  enum class stage : std::uint8_t { joining, idle, launching, running };

  void add(const device_step& step);
  [[nodiscard]] bool is_in_progress() const;
  void end(const std::function<void(parts&)>& how) noexcept;
  static void end_here(std::shared_ptr<parts> what, const std::function<void(parts&)>& how) noexcept;

  std::shared_ptr<parts> parts_;
  stage stage_ = stage::joining;
};

/// Whether NCCL has that type, and reduces it so.
[[nodiscard]] bool nccl_reduces(dtype type, reduction_op op) noexcept;

}  // namespace muster::detail
