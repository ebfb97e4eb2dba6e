// SPDX-License-Identifier: BSL-1.0
#include "told_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <muster/base/system_call.hpp>

namespace bench {

namespace {

struct channel {
  muster::unique_fd read_end;
  muster::unique_fd write_end;
};

channel make_pipe() {
  std::array<int, 2> ends{};
  muster::system_call("pipe2", ::pipe2, ends.data(), O_CLOEXEC);
  return {muster::unique_fd(ends[0]), muster::unique_fd(ends[1])};
}

pid_t spawn(std::vector<std::string>& command, const channel& to, const channel& from) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to.read_end.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, from.write_end.get(), 1);
  std::vector<char*> arguments;
  for (auto& each : command) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  pid_t made = 0;
  const int failed = ::posix_spawn(&made, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("posix_spawn of " + command[0] + " failed");
  return made;
}

}  // namespace

told_program::told_program(std::vector<std::string> command) : name_(command.at(0)) {
  auto to = make_pipe();
  auto from = make_pipe();
  process_ = spawn(command, to, from);
  requests_ = std::move(to.write_end);
  answers_ = std::move(from.read_end);
  from.write_end = {};
  run(1);
}

told_program::~told_program() {
  requests_ = {};
  ::waitpid(process_, nullptr, 0);
}

void told_program::ask(const std::string& line) {
  muster::system_call("write", ::write, requests_.get(), line.data(), line.size());
}

std::string told_program::read_line() {
  constexpr std::size_t most = 65536;
  std::string line;
  while (line.empty() || line.back() != '\n') {
    const auto before = line.size();
    line.resize(before + most);
    const auto got = muster::system_call("read", ::read, answers_.get(), line.data() + before, most);
    if (got == 0) throw std::runtime_error("the peer " + name_ + " has ended");
    line.resize(before + static_cast<std::size_t>(got));
  }
  return line;
}

void told_program::run(std::size_t count) {
  ask(std::to_string(count) + "\n");
  static_cast<void>(read_line());
}

std::vector<double> told_program::run_singly(std::size_t count) {
  ask("-" + std::to_string(count) + "\n");
  std::istringstream words(read_line());
  return {std::istream_iterator<double>(words), std::istream_iterator<double>()};
}

}  // namespace bench
