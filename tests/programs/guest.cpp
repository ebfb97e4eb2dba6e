// SPDX-License-Identifier: BSL-1.0
// A program of its own that joins the domain of a test: guest PATH COMMAND [ARGUMENT]. tests/process/join_test.cpp.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/process/join.hpp>
#include <muster/process/listener.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/shared_queue.hpp>

namespace {

using muster::event;
using muster::join;
using muster::joined_domain;
using muster::shared_block;
using muster::shared_queue;
using muster::tensor;

// What a guest hands over.
std::atomic<std::uint64_t>& mailbox(const shared_block& block) {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(block.data());
}

int join_and_leave(const std::string& path, const std::string&) {
  static_cast<void>(join(path));
  return 0;
}

// Fetches what the host will deposit, and deposits it again under a name of its own, anchored to a block of the host's.
// Then it ends, or waits until it is killed.
int pass_descriptor_on(const std::string& path, const std::string& how) {
  const auto host = join(path);
  auto& exchange = host.shared()->descriptors();
  const muster::descriptor_name wanted(host.get<std::uint64_t>("wanted"));
  auto found = exchange.fetch(wanted, muster::deadline::never());
  if (!found) return 1;
  const auto name = exchange.make_name();
  exchange.deposit(name, std::move(*found), host.get<shared_block>("number"));
  mailbox(host.get<shared_block>("mailbox")) = name.bits();
  host.get<event>("done").set();
  if (how == "waits") event().wait();
  if (how == "withdraws") exchange.withdraw(name);
  return 0;
}

// Asks for values while one of its threads waits for a descriptor that does not come before its deadline.
int ask_and_fetch(const std::string& path, const std::string&) {
  const auto host = join(path);
  const muster::descriptor_name wanted(host.get<std::uint64_t>("wanted"));
  bool is_late = false;
  std::thread waits([&] {
    try {
      static_cast<void>(host.shared()->descriptors().fetch(wanted, muster::deadline::after(std::chrono::seconds(1))));
    } catch (const muster::error& failure) {
      is_late = failure.code() == muster::errc::timed_out;
    }
  });
  for (int times = 0; times < 100; ++times) mailbox(host.get<shared_block>("number")) += 1;
  waits.join();
  return is_late ? 0 : 1;
}

// Writes to a file why it is refused.
int be_refused(const std::string& path, const std::string& file) {
  try {
    static_cast<void>(join(path));
  } catch (const muster::error& problem) {
    std::ofstream(file) << problem.what();
    return problem.code() == muster::errc::module_mismatch ? 0 : 2;
  }
  return 1;
}

// Adds to a number that lies in a block, and says so.
int add(const std::string& path, const std::string&) {
  const auto host = join(path);
  const auto block = host.get<shared_block>("number");
  const auto more = host.get<int>("more");
  mailbox(block) += static_cast<std::uint64_t>(more);
  host.get<event>("done").set();
  return 0;
}

// Doubles a tensor in place, and hands over one of its own.
int tensors(const std::string& path, const std::string&) {
  const auto host = join(path);
  auto numbers = host.get<tensor>("numbers");
  for (auto& each : numbers.span<float>()) each *= 2;
  const auto made = host.shared()->blocks().allocate_shared(1 << 20);
  std::memset(made.data(), 'g', made.size());
  mailbox(host.get<shared_block>("mailbox")) = host.shared()->blocks().send(made);
  host.get<event>("done").set();
  host.get<event>("taken").wait();
  return 0;
}

// Holds, owns and is about to hand over this and that until it is killed.
int hold(const std::string& path, const std::string&) {
  const auto host = join(path);
  auto& memory = host.shared()->blocks();
  std::vector<shared_block> held;
  std::vector<muster::block> owned;
  for (std::size_t each = 1; each < 8; ++each) {
    held.push_back(memory.allocate_shared(each * 100'000));
    static_cast<void>(memory.send(held.back()));
    owned.push_back(memory.allocate(each * 1000));
  }
  const auto theirs = host.get<shared_block>("number");
  const std::vector<event> more(3);
  host.get<event>("done").set();
  event().wait();
  return 1;
}

// Waits in two threads until it is killed.
int wait_in_two_threads(const std::string& path, const std::string&) {
  const auto host = join(path);
  std::thread([] {
    for (;;) ::pause();
  }).detach();
  host.get<event>("done").set();
  event().wait();
  return 1;
}

// Doubles tensors in place until no more come.
int serve(const std::string& path, const std::string&) {
  const auto host = join(path);
  auto jobs = host.get<shared_queue<tensor>>("jobs");
  auto results = host.get<shared_queue<tensor>>("results");
  while (auto next = jobs.pop()) {
    for (auto& each : next->span<float>()) each *= 2;
    results.push(std::move(*next));
  }
  return 0;
}

// Is killed with one tensor popped and one on lease.
int take_two(const std::string& path, const std::string&) {
  const auto host = join(path);
  auto jobs = host.get<shared_queue<tensor>>("jobs");
  const auto popped = jobs.pop();
  const auto leased = jobs.lease();
  host.get<event>("done").set();
  event().wait();
  return 1;
}

// Passes tensors on until no more come, or until it is killed wherever it is.
int pass_on(const std::string& path, const std::string& how) {
  const auto host = join(path);
  auto jobs = host.get<shared_queue<tensor>>("jobs");
  auto results = host.get<shared_queue<tensor>>("results");
  if (how == "pop") {
    while (const auto next = jobs.pop()) results.push(*next);
  } else {
    while (auto next = jobs.lease()) {
      results.push(**next);
      next->ack();
    }
  }
  return 0;
}

// Is killed while it does this and that.
int toggle(const std::string& path, const std::string&) {
  const auto host = join(path);
  const auto done = host.get<event>("done");
  for (;;) {
    done.set();
    done.clear();
    shared_block passing = host.shared()->blocks().allocate_shared(1000);
    mailbox(host.get<shared_block>("number")).fetch_add(1);
  }
}

// Leaves the domain, and lives on.
int leave_and_live(const std::string& path, const std::string&) {
  join(path).get<event>("done").set();
  for (;;) ::pause();
}

// Keeps tensors, and no handle.
int keep_tensors(const std::string& path, const std::string&) {
  tensor theirs;
  tensor own;
  {
    const auto host = join(path);
    theirs = host.get<tensor>("numbers");
    own = tensor::ones<float>({1000});
  }
  if (muster::domain::entered() == nullptr) return 1;
  for (auto& each : theirs.span<float>()) each *= 2;
  return own.span<float>()[999] == 1.0F ? 0 : 2;
}

// As programs do that become daemons: closes what it does not know, and still uses the memory.
int close_all(const std::string& path, const std::string&) {
  const auto host = join(path);
  const auto done = host.get<event>("done");
  const auto taken = host.get<event>("taken");
  ::close_range(3, ~0U, 0);
  done.set();
  taken.wait();
  std::_Exit(0);
}

int await_the_end_of_the_host(const std::string& path, const std::string&) {
  const auto host = join(path);
  if (!host.is_hosted()) return 1;
  host.get<event>("done").set();
  while (host.is_hosted()) ::sched_yield();
  try {
    static_cast<void>(host.names());
  } catch (const muster::error&) {
    return 0;
  }
  return 2;
}

// A host, which says by files how far it is; when a program has joined, it does as it is told.
template <class Then>
int be_host(const std::string& path, const std::string& file, Then then) {
  const auto watcher = std::make_shared<muster::supervisor>(muster::domain_options{.arena_bytes = 1 << 24});
  muster::listener door(watcher, path);
  const event there(watcher->shared());
  door.offer("done", there);
  std::ofstream(file + "listens") << "yes";
  there.wait();
  then();
  for (;;) ::pause();
}

int host(const std::string& path, const std::string& file) {
  return be_host(path, file, [&] { std::ofstream(file + "joined") << "yes"; });
}

// Has a forked child then, of which it says by a file who it is.
int host_with_a_child(const std::string& path, const std::string& file) {
  return be_host(path, file, [&] {
    const auto child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    std::ofstream(file + "child.new") << child;
    std::rename((file + "child.new").c_str(), (file + "child").c_str());
  });
}

// Has a child then that is made past the C library; says by a file who it is.
int host_with_a_clone(const std::string& path, const std::string& file) {
  return be_host(path, file, [&] {
    const auto child = ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
      for (;;) ::pause();
    }
    std::ofstream(file + "child.new") << child;
    std::rename((file + "child.new").c_str(), (file + "child").c_str());
  });
}

// Waits for a descriptor that never comes while its host ends.
int await_a_descriptor(const std::string& path, const std::string&) {
  const auto host = join(path);
  auto& exchange = host.shared()->descriptors();
  const auto never_deposited = exchange.make_name();
  host.get<event>("done").set();
  try {
    static_cast<void>(exchange.fetch(never_deposited, muster::deadline::never()));
  } catch (const muster::error& failure) {
    return failure.code() == std::errc::connection_reset ? 0 : 3;
  }
  return 4;
}

int join_twice(const std::string& path, const std::string&) {
  const auto host = join(path);
  try {
    static_cast<void>(join(path));
  } catch (const muster::error& problem) {
    return problem.code() == muster::errc::invalid_argument ? 0 : 2;
  }
  return 1;
}

int join_again_after_leaving(const std::string& path, const std::string&) {
  for (int times = 0; times < 3; ++times) join(path).get<event>("done").set();
  return 0;
}

// Writes the error to a file.
int get_unknown(const std::string& path, const std::string& file) {
  const auto host = join(path);
  std::string all;
  for (const auto& each : host.names()) all += each + ' ';
  for (const bool known : {false, true}) {
    try {
      known ? static_cast<void>(host.get<int>("done")) : static_cast<void>(host.get<event>("nothing"));
    } catch (const muster::error& problem) {
      all += problem.what();
    }
  }
  auto* out = std::fopen(file.c_str(), "w");
  std::fputs(all.c_str(), out);
  std::fclose(out);
  return 0;
}

const std::map<std::string, std::function<int(const std::string&, const std::string&)>> commands = {
    {"join_and_leave", join_and_leave},
    {"pass_descriptor_on", pass_descriptor_on},
    {"ask_and_fetch", ask_and_fetch},
    {"be_refused", be_refused},
    {"add", add},
    {"tensors", tensors},
    {"hold", hold},
    {"wait_in_two_threads", wait_in_two_threads},
    {"serve", serve},
    {"take_two", take_two},
    {"pass_on", pass_on},
    {"toggle", toggle},
    {"leave_and_live", leave_and_live},
    {"keep_tensors", keep_tensors},
    {"close_all", close_all},
    {"await_the_end_of_the_host", await_the_end_of_the_host},
    {"host", host},
    {"host_with_a_child", host_with_a_child},
    {"host_with_a_clone", host_with_a_clone},
    {"await_a_descriptor", await_a_descriptor},
    {"join_twice", join_twice},
    {"join_again_after_leaving", join_again_after_leaving},
    {"get_unknown", get_unknown},
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 64;
  try {
    return commands.at(arguments[2])(arguments[1], count > 3 ? arguments[3] : "");
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "guest %s: %s\n", arguments[2], failure.what());
    return 99;
  }
}
