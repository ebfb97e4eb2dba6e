// SPDX-License-Identifier: BSL-1.0
// Members that are programs of their own (tests/programs/rpc_guest.cpp): they have joined this program's domain, or
// this program is not there at all.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/process/listener.hpp>
#include <muster/rpc.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::rpc_guest_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class RpcGuest : public testing::Test {
protected:
  [[nodiscard]] std::unique_ptr<test::processes> start(const std::string& command, const std::string& file = "") const {
    return test::spawn(1, [&](std::size_t) {
      ::execl(MUSTER_RPC_GUEST, MUSTER_RPC_GUEST, path().c_str(), command.c_str(), file.c_str(), nullptr);
      return 127;
    });
  }
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "door"; }
  [[nodiscard]] std::string file() const { return directory_.path() / "said"; }
  [[nodiscard]] std::string said() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }

private:
  test::temporary_directory directory_;
};

/// This program is the host.
class RpcGuestHere : public RpcGuest {
protected:
  RpcGuestHere() { door_.offer("ticket", ticket_); }

  listener door_{path()};
  rpc_ticket ticket_{"with a guest", {"host", "guest"}, {.timeout = 60s}};
  rpc_group group_{ticket_, "host"};
};

TEST_F(RpcGuestHere, ItsServicesAreCalledByName) {
  const auto guest = start("serve");
  EXPECT_EQ(group_.service<int(int)>("double")(21), 42);
  EXPECT_EQ(group_.service<int()>("process")(), guest->pid(0));
  const auto here = tensor::zeros<float>({1000});
  group_.service<void(tensor)>("fill")(here);
  EXPECT_EQ(here.span<const float>()[999], 3.0F) << "tensors go by reference";
  group_.service<void()>("leave")();
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
  EXPECT_FALSE(group_.is_served("process"));
}

TEST_F(RpcGuestHere, ItCallsServicesAndNoFunctionsOfItsOwnCode) {
  group_.serve("square", [](int number) { return number * number; });
  const auto guest = start("call", file());
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
  EXPECT_THAT(said(), HasSubstr("'host' is another program than this one"));
}

TEST_F(RpcGuestHere, FunctionsOfThisProgramAreNotSentToIt) {
  const auto guest = start("serve");
  group_.service<int()>("process")();
  try {
    group_.call("guest", [] { return 1; });
    FAIL() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::module_mismatch);
    EXPECT_THAT(failure.what(), HasSubstr("'guest' is another program than this one"));
  }
  EXPECT_EQ(group_.stats().calls, 1U) << "it was not sent";
  group_.service<void()>("leave")();
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
}

TEST_F(RpcGuestHere, ThatIsKilledIsLostAndItsNameIsFree) {
  const auto guest = start("serve");
  auto asked = group_.service<void()>("hang").call_async();
  EXPECT_EQ(group_.service<int(int)>("double")(4), 8);
  guest->kill(0);
  EXPECT_THROW(asked.get(), member_lost);
  EXPECT_FALSE(group_.is_served("hang"));
  const auto next = start("serve");
  EXPECT_EQ(group_.service<int(int)>("double")(5), 10);
  group_.service<void()>("leave")();
  EXPECT_EQ(next->wait(0), exit_status::exited(0));
}

TEST_F(RpcGuest, AfterTheEndOfItsHostCallsAndWaitsThrow) {
  const auto host = start("host", file());
  ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(file() + ".offered"); }));
  const auto guest = start("outlive");
  ASSERT_TRUE(test::eventually([&] { return !said().empty(); }));
  host->kill(0);
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
}

}  // namespace
}  // namespace muster::rpc_guest_test
