// SPDX-License-Identifier: BSL-1.0
#include "python_peer.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <stdexcept>

#include <muster/base/system_call.hpp>

namespace bench {

namespace {

constexpr const char* interpreter = "/usr/bin/python3";

std::string program(const std::string& body, unsigned workers) {
  return "import sys, multiprocessing\n"
         "def add(a, b): return a + b\n"
         "def add_one(x): return x + 1\n"
         "pool = multiprocessing.get_context('fork').Pool(" +
         std::to_string(workers) +
         ")\n"
         "for line in sys.stdin:\n"
         "    count = int(line)\n"
         "    " +
         body +
         "\n"
         "    print('.', flush=True)\n";
}

struct channel {
  muster::unique_fd read_end;
  muster::unique_fd write_end;
};

channel make_pipe() {
  std::array<int, 2> ends{};
  muster::system_call("pipe2", ::pipe2, ends.data(), O_CLOEXEC);
  return {muster::unique_fd(ends[0]), muster::unique_fd(ends[1])};
}

}  // namespace

bool python_peer::is_there() { return std::filesystem::exists(interpreter); }

python_peer::python_peer(const std::string& body, unsigned workers) {
  auto to = make_pipe();
  auto from = make_pipe();
  const auto text = program(body, workers);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to.read_end.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, from.write_end.get(), 1);
  std::array<char*, 4> arguments{const_cast<char*>(interpreter), const_cast<char*>("-c"),
                                 const_cast<char*>(text.c_str()), nullptr};
  const int failed = ::posix_spawn(&process_, interpreter, &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error(std::string("posix_spawn of ") + interpreter + " failed");
  requests_ = std::move(to.write_end);
  answers_ = std::move(from.read_end);
  run(1);
}

// At the end of its input it leaves, and its pool with it.
python_peer::~python_peer() {
  requests_ = {};
  ::waitpid(process_, nullptr, 0);
}

void python_peer::run(std::size_t count) {
  const auto line = std::to_string(count) + "\n";
  muster::system_call("write", ::write, requests_.get(), line.data(), line.size());
  std::array<char, 2> answer{};
  for (std::size_t got = 0; got < answer.size();) {
    const auto read = muster::system_call("read", ::read, answers_.get(), answer.data() + got, answer.size() - got);
    if (read == 0) throw std::runtime_error("the Python peer has ended");
    got += static_cast<std::size_t>(read);
  }
}

}  // namespace bench
