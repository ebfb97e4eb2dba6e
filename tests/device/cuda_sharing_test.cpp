// SPDX-License-Identifier: BSL-1.0
// Memory of a device that processes share: what the driver has for that, and that the fake one has it too.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <muster/base/unique_fd.hpp>
#include <muster/cuda/driver.hpp>

#include "cuda_support.hpp"
#include "device_support.hpp"
#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::cuda_sharing_test {
namespace {

constexpr std::size_t bytes = std::size_t{2} << 20U;

// A process of program_cuda_peer.
class peer {
public:
  explicit peer(const char* what = nullptr) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    socket_ = unique_fd(ends[0]);
    const auto other = std::to_string(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      ::execl(MUSTER_CUDA_PEER, MUSTER_CUDA_PEER, other.c_str(), what, nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
  }
  peer(const peer&) = delete;
  peer& operator=(const peer&) = delete;
  ~peer() {
    if (pid_ > 0) kill();
  }

  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  // Nothing if it could not.
  [[nodiscard]] unique_fd receive() const {
    char byte = 0;
    iovec content{.iov_base = &byte, .iov_len = 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC) != 1) return {};
    int found = -1;
    std::memcpy(&found, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(found));
    return unique_fd(found);
  }

  [[nodiscard]] CUipcMemHandle receive_handle() const {
    CUipcMemHandle found{};
    EXPECT_EQ(::recv(socket_.get(), &found, sizeof found, MSG_WAITALL), static_cast<ssize_t>(sizeof found));
    return found;
  }

private:
  unique_fd socket_;
  pid_t pid_ = 0;
};

std::size_t free_bytes(const cuda_driver& driver) {
  std::size_t free = 0;
  std::size_t total = 0;
  driver.memory_info(&free, &total);
  return free;
}

CUdeviceptr map(const cuda_driver& driver, CUmemGenericAllocationHandle memory) {
  CUdeviceptr first = 0;
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  driver.address_reserve(&first, bytes, 0, 0, 0);
  driver.memory_map(first, bytes, 0, memory, 0);
  driver.memory_set_access(first, bytes, &access, 1);
  return first;
}

// What a process that is killed meanwhile has lent is read, and let go of.
void hold_what_a_killed_one_had(const test::cuda_bench& bench) {
  const auto& driver = bench.driver();
  const auto before = free_bytes(driver);
  peer exporter;
  const auto descriptor = exporter.receive();
  ASSERT_TRUE(descriptor);
  EXPECT_LE(free_bytes(driver), before - bytes);
  CUmemGenericAllocationHandle memory = 0;
  driver.memory_import(&memory, reinterpret_cast<void*>(std::intptr_t{descriptor.get()}),
                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  exporter.kill();
  const auto first = map(driver, memory);
  driver.memory_release(memory);
  std::vector<std::byte> found(bytes);
  bench.fetch(found, first);
  EXPECT_EQ(std::ranges::count(found, std::byte{42}), static_cast<std::ptrdiff_t>(bytes));
  driver.memory_unmap(first, bytes);
  driver.address_free(first, bytes);
}

TEST(CudaSharing, MemoryOfAKilledProcessIsThereUntilItsLastHolderLetsGo) {
  const test::temporary_directory directory;
  if (!test::runs_alone({"FAKE_CUDA_SHARED=" + directory.path().string()})) return;
  if (const auto why = cuda_driver::problem()) GTEST_SKIP() << *why;
  const test::cuda_bench bench(bytes);
  hold_what_a_killed_one_had(bench);  // what a context takes for the first one it keeps
  const auto before = free_bytes(bench.driver());
  hold_what_a_killed_one_had(bench);
  EXPECT_TRUE(test::eventually([&] { return free_bytes(bench.driver()) >= before; }));
}

TEST(CudaSharing, AHandleIsOpenedAtOneAddressAndOnlyWhileItsProcessIsThere) {
  if (!test::runs_alone({"FAKE_CUDA_DESCRIPTORS=0"})) return;
  if (const auto why = cuda_driver::problem()) GTEST_SKIP() << *why;
  test::cuda_bench bench(bytes);
  const auto& driver = bench.driver();
  peer exporter("handle");
  const auto handle = exporter.receive_handle();
  CUdeviceptr first = 0;
  CUdeviceptr again = 0;
  driver.block_open(&first, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  driver.block_open(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  EXPECT_EQ(again, first);
  driver.block_close(again);
  std::vector<std::byte> found(bytes);
  bench.fetch(found, first);
  EXPECT_EQ(std::ranges::count(found, std::byte{42}), static_cast<std::ptrdiff_t>(bytes));
  driver.block_close(first);
  exporter.kill();
  EXPECT_NE(driver.block_open.attempt(&first, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS);
}

TEST(CudaSharing, AHandleIsOfNoUseToItsOwnProcess) {
  if (!test::runs_alone({})) return;
  if (const auto why = cuda_driver::problem()) GTEST_SKIP() << *why;
  test::cuda_bench bench(bytes);
  const auto& driver = bench.driver();
  CUdeviceptr first = 0;
  CUdeviceptr other = 0;
  CUipcMemHandle handle{};
  driver.block_allocate(&first, bytes);
  driver.block_handle(&handle, first);
  EXPECT_NE(driver.block_open.attempt(&other, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS);
  driver.block_free(first);
  EXPECT_NE(driver.block_handle.attempt(&handle, bench.take(256)), CUDA_SUCCESS) << "memory that is mapped has none";
}

}  // namespace
}  // namespace muster::cuda_sharing_test
