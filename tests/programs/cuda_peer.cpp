// SPDX-License-Identifier: BSL-1.0
// A program of its own that has memory on device 0: cuda_peer SOCKET [handle]. It fills 2 MiB with 42, sends their
// descriptor, or handle, over the socket, and goes on until that is closed. tests/device/cuda_sharing_test.cpp.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <muster/cuda/driver.hpp>

namespace {

constexpr std::size_t bytes = std::size_t{2} << 20U;

void send(int socket, int descriptor) {
  char byte = 0;
  iovec content{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  auto* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  if (::sendmsg(socket, &message, 0) != 1) std::abort();
}

int exported(const muster::cuda_driver& driver) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAccessDesc access{};
  access.location = wanted.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUmemGenericAllocationHandle memory = 0;
  CUdeviceptr first = 0;
  driver.memory_create(&memory, bytes, &wanted, 0);
  driver.address_reserve(&first, bytes, 0, 0, 0);
  driver.memory_map(first, bytes, 0, memory, 0);
  driver.memory_set_access(first, bytes, &access, 1);
  driver.set_async_8(first, 42, bytes, nullptr);
  driver.stream_synchronize(nullptr);
  int descriptor = -1;
  driver.memory_export(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  return descriptor;
}

CUipcMemHandle handle_of(const muster::cuda_driver& driver) {
  CUdeviceptr first = 0;
  CUipcMemHandle handle{};
  driver.block_allocate(&first, bytes);
  driver.set_async_8(first, 42, bytes, nullptr);
  driver.stream_synchronize(nullptr);
  driver.block_handle(&handle, first);
  return handle;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  try {
    const auto driver = muster::cuda_driver::load();
    CUcontext context = nullptr;
    driver->context_retain(&context, 0);
    driver->context_set(context);
    const int socket = std::atoi(argv[1]);
    if (argc == 2) {
      send(socket, exported(*driver));
    } else {
      const auto handle = handle_of(*driver);
      if (::write(socket, &handle, sizeof handle) != sizeof handle) return 5;
    }
    char end = 0;
    return ::read(socket, &end, 1) == 0 ? EXIT_SUCCESS : 3;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "cuda_peer: %s\n", failure.what());
    return 4;
  }
}
