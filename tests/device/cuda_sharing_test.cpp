// SPDX-License-Identifier: BSL-1.0
// Memory of a device that processes share: what the driver has for that, and that the fake one has it too.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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
  peer() {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    socket_ = unique_fd(ends[0]);
    const auto other = std::to_string(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      ::execl(MUSTER_CUDA_PEER, MUSTER_CUDA_PEER, other.c_str(), nullptr);
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

TEST(CudaSharing, MemoryOfAKilledProcessIsThereUntilItsLastHolderLetsGo) {
  const test::temporary_directory directory;
  if (!test::runs_alone({"FAKE_CUDA_SHARED=" + directory.path().string()})) return;
  if (const auto why = cuda_driver::problem()) GTEST_SKIP() << *why;
  test::cuda_bench bench(bytes);
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
  EXPECT_TRUE(test::eventually([&] { return free_bytes(driver) >= before; }));
}

}  // namespace
}  // namespace muster::cuda_sharing_test
