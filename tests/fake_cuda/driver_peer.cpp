// SPDX-License-Identifier: BSL-1.0
// Functions of the driver: memory that is allocated and sent as a whole, and devices that reach one another's.
#include <cstring>

#include "call.hpp"
#include "execute.hpp"

using namespace fake_cuda;

namespace {

void require_ipc() { require(the_machine().devices().has_ipc(), CUDA_ERROR_NOT_SUPPORTED); }

std::shared_ptr<context> whole_context(CUcontext which) {
  auto found = the_machine().contexts.find(which, CUDA_ERROR_INVALID_CONTEXT);
  require(!found->is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  if (const auto code = found->broken_by.load(); code != CUDA_SUCCESS) throw failure{code};
  return found;
}

void require_on(CUdeviceptr where, std::size_t bytes, const context& of) {
  const auto found = the_machine().space.find(where, bytes, of.physical);
  require(found.where == address_space::place::device, CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* made, std::size_t bytes) {
  return call_in_context("cuMemAlloc", [&](const std::shared_ptr<context>& here) {
    auto& all = the_machine();
    *made = all.blocks.allocate(all.ledger(), here, bytes, all.devices().memory_bytes());
  });
}

CUresult CUDAAPI cuMemFree(CUdeviceptr first) {
  return call_in_context("cuMemFree", [&](const auto&) {
    if (first != 0) the_machine().blocks.free(first);
  });
}

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr first) {
  return call_in_context("cuIpcGetMemHandle", [&](const auto&) {
    require_ipc();
    *handle = the_machine().blocks.handle_of(first);
  });
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr* found, CUipcMemHandle handle, unsigned int flags) {
  return call_in_context("cuIpcOpenMemHandle", [&](const std::shared_ptr<context>& here) {
    require_ipc();
    require(flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, CUDA_ERROR_INVALID_VALUE);
    *found = the_machine().blocks.open(the_machine().ledger(), here, handle);
  });
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr first) {
  return call_in_context("cuIpcCloseMemHandle", [&](const auto&) {
    require_ipc();
    the_machine().blocks.close(first);
  });
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice other) {
  return call("cuDeviceCanAccessPeer", [&] {
    const auto& all = the_machine().devices();
    *can = all.physical(device) != all.physical(other) && all.are_peers() ? 1 : 0;
  });
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext other, unsigned int flags) {
  return call_in_context("cuCtxEnablePeerAccess", [&](const std::shared_ptr<context>& here) {
    const auto peer = whole_context(other);
    require(flags == 0, CUDA_ERROR_INVALID_VALUE);
    require(peer != here, CUDA_ERROR_INVALID_CONTEXT);
    require(the_machine().devices().are_peers(), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    require(the_machine().blocks.let_access(here->physical, peer->physical), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  });
}

// The device that copies reaches both, or the driver takes the long way.
CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                   std::size_t bytes, CUstream which) {
  return call_in_context("cuMemcpyPeerAsync", [&](const std::shared_ptr<context>& here) {
    auto& all = the_machine();
    const auto on = all.find_stream(which, here);
    require_on(to, bytes, *whole_context(to_context));
    require_on(from, bytes, *whole_context(from_context));
    const auto reaches = [&](CUdeviceptr where) { return all.space.is_reached(where, bytes, on->in()->physical); };
    ++(reaches(to) && reaches(from) ? all.direct_copies : all.staged_copies);
    execute(on, "copy", [to, from, bytes] {
      std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    });
  });
}
}
