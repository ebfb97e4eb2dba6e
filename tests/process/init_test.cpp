// SPDX-License-Identifier: BSL-1.0
#include <muster/process/init.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "channel.hpp"
#include "processes.hpp"
#include "spawn.hpp"

namespace muster::init_test {
namespace {

TEST(Init, WasCalledHere) { EXPECT_NO_THROW(detail::require_init()); }

TEST(Init, AForkedChildMustCallItAgain) {
  const auto ranks = test::spawn(1, [](std::size_t) {
    try {
      detail::require_init();
      return 1;
    } catch (const error& failure) {
      const std::string what = failure.what();
      if (failure.code() != errc::not_initialized || what.find("again after fork()") == std::string::npos) return 2;
    }
    init(0, nullptr);
    detail::require_init();
    return 0;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

TEST(Init, AMarkWithoutTheSocketIsNoWorkerAndIsRemoved) {
  const auto ranks = test::spawn(1, [](std::size_t) {
    ::setenv("MUSTER_WORKER", "forged", 1);
    init(0, nullptr);  // returns
    return std::getenv("MUSTER_WORKER") == nullptr ? 0 : 1;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

// As a program would be started by somebody who wants it to run what he says.
TEST(Init, AGreetingOfWhoIsNotTheParentEndsTheProcess) {
  const auto maker = test::spawn(1, [](std::size_t) {
    auto [ours, theirs] = detail::make_channel();
    const std::string mark = "forged";
    detail::send_message(ours.get(), detail::message_kind::greeting, std::as_bytes(std::span(mark)));
    ::setenv(detail::worker_variable, mark.c_str(), 1);
    const auto parent = test::spawn(1, [control = theirs.get()](std::size_t) {
      ::dup2(control, detail::control_descriptor);
      ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
      const auto child = test::spawn(1, [](std::size_t) {
        init(0, nullptr);
        return 0;
      });
      return child->wait(0) == exit_status::exited(EXIT_FAILURE) ? 0 : 1;
    });
    return parent->wait(0) == exit_status::exited(0) ? 0 : 2;
  });
  EXPECT_EQ(maker->wait(0), exit_status::exited(0));
}

// Its maker is its parent, but of another user: as if the parent had been made to start somebody's program.
TEST(Init, AGreetingOfAnotherUserEndsTheProcess) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto parent = test::spawn(1, [](std::size_t) {
    auto [ours, theirs] = detail::make_channel();
    const std::string mark = "forged";
    detail::send_message(ours.get(), detail::message_kind::greeting, std::as_bytes(std::span(mark)));
    ::setenv(detail::worker_variable, mark.c_str(), 1);
    std::array<int, 2> said{};
    if (::pipe2(said.data(), O_CLOEXEC) != 0) return 1;
    const auto child = test::spawn(1, [control = theirs.get(), said](std::size_t) {
      ::dup2(control, detail::control_descriptor);
      ::dup2(said[1], STDERR_FILENO);
      if (::setresuid(65534, 65534, 65534) != 0) return 2;
      init(0, nullptr);
      return 0;
    });
    if (child->wait(0) != exit_status::exited(EXIT_FAILURE)) return 2;
    ::close(said[1]);
    std::array<char, 1000> words{};
    const auto length = ::read(said[0], words.data(), words.size());
    const std::string_view text(words.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    return text.find("as user 65534, but as a worker of") != text.npos && text.find("of user 0") != text.npos ? 0 : 3;
  });
  EXPECT_EQ(parent->wait(0), exit_status::exited(0));
}

}  // namespace
}  // namespace muster::init_test
