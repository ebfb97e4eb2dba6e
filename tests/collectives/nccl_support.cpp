// SPDX-License-Identifier: BSL-1.0
#include "nccl_support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include <muster/cuda/cuda_device.hpp>
#include <muster/nccl/nccl_library.hpp>

#include "processes.hpp"

namespace muster::test {

namespace {

// Exits with what `call` returns, in a process of its own.
int asked_elsewhere(const std::function<int()>& call) {
  processes other;
  other.add([&](std::size_t) { return call(); });
  return other.wait(0).code();
}

constexpr int lacks_gpu = 1;  // bits
constexpr int lacks_nccl = 2;
constexpr int has_fake = 4;

int look() {
  const int lacks = (cuda_driver::problem() ? lacks_gpu : 0) | (nccl_library::problem() ? lacks_nccl : 0);
  if (lacks != 0) return lacks;
  return fake_nccl().is_there() ? has_fake : 0;
}

int what_is_here() {
  static const auto found = asked_elsewhere(look);
  return found;
}

}  // namespace

// Ranks on hosts of their own, as they say, meet over sockets, and leave room for one another on the device. NCCL's log
// tells whether they do.
device take_device(const group& mine) {
  const auto name = "muster-test-rank-" + std::to_string(mine.rank()) + "-of-" + std::to_string(::getpid());
  using setting = std::pair<const char*, const char*>;
  for (const auto& [variable, value] :
       {setting{"NCCL_HOSTID", name.c_str()}, setting{"NCCL_NET", "Socket"}, setting{"NCCL_SOCKET_IFNAME", "lo"},
        setting{"NCCL_IB_DISABLE", "1"}, setting{"NCCL_NET_PLUGIN", "none"}, setting{"NCCL_MNNVL_ENABLE", "0"},
        setting{"NCCL_NVLS_ENABLE", "0"}, setting{"NCCL_MAX_CTAS", "2"}, setting{"NCCL_BUFFSIZE", "1048576"},
        setting{"NCCL_RAS_ENABLE", "0"}, setting{"NCCL_DEBUG", "INFO"}, setting{"NCCL_DEBUG_SUBSYS", "INIT,NET"},
        setting{"CUDA_MODULE_LOADING", "EAGER"}}) {
    ::setenv(variable, value, 1);
  }
  return device::cuda(static_cast<std::uint16_t>(mine.rank() % cuda_device::count()));
}

void run_on_devices(std::size_t ranks, const device_body& run, const group_options& options) {
  run_group(rank_kind::processes, ranks, [&](group& mine) { run(mine, take_device(mine)); }, options);
}

void nccl_test::SetUp() {
  switch (what_is_here()) {
    case lacks_gpu: GTEST_SKIP() << "no GPU can be used here; NCCL is here";
    case lacks_nccl: GTEST_SKIP() << "no NCCL can be used here; a GPU is here";
    case lacks_gpu | lacks_nccl: GTEST_SKIP() << "neither a GPU nor NCCL can be used here";
    default: break;
  }
}

bool nccl_test::is_fake() { return what_is_here() == has_fake; }

}  // namespace muster::test
