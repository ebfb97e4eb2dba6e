// SPDX-License-Identifier: BSL-1.0
// A program of its own that is a member of an RPC group: rpc_guest PATH COMMAND [FILE]. tests/rpc/rpc_guest_test.cpp.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <muster/base/error.hpp>
#include <muster/device/tensor.hpp>
#include <muster/process/join.hpp>
#include <muster/process/listener.hpp>
#include <muster/queue/event.hpp>
#include <muster/rpc.hpp>

namespace {

using namespace std::chrono_literals;

muster::rpc_ticket ticket_of(const muster::joined_domain& host) { return host.get<muster::rpc_ticket>("ticket"); }

// Serves, until it is asked to leave.
int serve(const std::string& path, const std::string&) {
  const auto host = muster::join(path);
  const muster::rpc_group group(ticket_of(host), "guest");
  group.serve("double", [](int number) { return 2 * number; });
  group.serve("fill", [](muster::tensor where) { where.fill(3.0F); });
  group.serve("hang", [] { muster::event().wait(); });
  group.serve("process", [] { return static_cast<int>(::getpid()); });
  group.serve("leave", [] { muster::this_call::group().leave(); });
  group.run();
  return 0;
}

// Calls the host's service, then a function, whose code the host does not have; says in a file how that is refused.
int call(const std::string& path, const std::string& file) {
  const auto host = muster::join(path);
  const muster::rpc_group group(ticket_of(host), "guest");
  if (group.call_service<int>("square", 7) != 49) return 1;
  try {
    group.call("host", [] { return 1; });
  } catch (const muster::error& problem) {
    std::ofstream(file) << problem.what();
    return problem.code() == muster::errc::module_mismatch ? 0 : 3;
  }
  return 4;
}

// A program whose group another joins; it never answers, and says by a file that it was asked.
int host(const std::string& path, const std::string& file) {
  muster::listener door(path);
  const muster::rpc_ticket ticket("hosted", {"host", "guest", "other"});
  const muster::rpc_group group(ticket, "host");
  group.serve("never", [&] {
    std::ofstream(file) << "asked";
    muster::event().wait();
  });
  door.offer("ticket", ticket);
  std::ofstream(file + ".offered") << "yes";
  muster::event().wait();
  return 0;
}

bool ends_with_the_host(const std::function<void()>& call) {
  try {
    call();
  } catch (const muster::error& problem) {
    return problem.code() == muster::errc::peer_lost;
  }
  return false;
}

// Is asked nothing and answered nothing while its host is killed.
int outlive(const std::string& path, const std::string&) {
  const auto host = muster::join(path);
  const auto ticket = ticket_of(host);
  const muster::rpc_group group(ticket, "guest");
  const auto never = group.service<void()>("never");
  auto also = never.with({.deadline = muster::forever}).call_async();
  if (!ends_with_the_host([&] { never.with({.deadline = muster::forever})(); })) return 1;
  if (!ends_with_the_host([&] { also.get(); })) return 2;
  if (!ends_with_the_host([&] { never(); })) return 3;
  if (!ends_with_the_host([&] { group.barrier(muster::forever); })) return 4;
  if (!ends_with_the_host([&] { static_cast<void>(group.service<void()>("another")); })) return 5;
  if (!ends_with_the_host([&] { group.serve("mine", [] {}); })) return 6;
  return 0;
}

const std::map<std::string, std::function<int(const std::string&, const std::string&)>> commands = {
    {"serve", serve}, {"call", call}, {"host", host}, {"outlive", outlive}};

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 64;
  try {
    return commands.at(arguments[2])(arguments[1], count > 3 ? arguments[3] : "");
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "rpc_guest %s: %s\n", arguments[2], failure.what());
    return 99;
  }
}
