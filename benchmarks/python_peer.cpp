// SPDX-License-Identifier: BSL-1.0
#include "python_peer.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <muster/base/system_call.hpp>

namespace bench {

namespace {

constexpr const char* interpreter = "/usr/bin/python3";

std::string text_of(const python_program& what) {
  return "import sys\n" + what.setup +
         "for line in sys.stdin:\n"
         "    count = int(line)\n"
         "    " +
         what.body +
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

python_program with_pool(unsigned workers, const std::string& body) {
  return {.setup =
              "import multiprocessing\n"
              "def add(a, b): return a + b\n"
              "def add_one(x): return x + 1\n"
              "pool = multiprocessing.get_context('fork').Pool(" +
              std::to_string(workers) + ")\n",
          .body = body};
}

python_program with_torch(std::size_t bytes, const std::string& body) {
  return {.setup =
              "import torch, torch.multiprocessing\n"
              "torch.multiprocessing.set_sharing_strategy('file_descriptor')\n"
              "def first(t): return int(t[0])\n"
              "pool = torch.multiprocessing.Pool(1)\n"
              "t = torch.ones(" +
              std::to_string(bytes) + ", dtype=torch.uint8).share_memory_()\n",
          .body = body};
}

namespace {

// Two processes, each bound to a processor: of what `make()` gives them, each turn is a `step`.
python_program in_two_with_gloo(const std::string& make_and_step) {
  return {.setup =
              "import multiprocessing, os, tempfile\n"
              "import torch, torch.distributed as dist\n"
              "os.environ['GLOO_SOCKET_IFNAME'] = 'lo'\n"
              "processors = sorted(os.sched_getaffinity(0))\n" +
              make_and_step +
              "def join(rank, meeting):\n"
              "    os.sched_setaffinity(0, {processors[rank]})\n"
              "    torch.set_num_threads(1)\n"
              "    dist.init_process_group('gloo', init_method='file://' + meeting, rank=rank, world_size=2)\n"
              "    return make()\n"
              "def take(made, count):\n"
              "    for _ in range(count): step(made)\n"
              "def serve(meeting, counts):\n"
              "    made = join(1, meeting)\n"
              "    for count in iter(counts.recv, 0): take(made, count)\n"
              "ours, theirs = multiprocessing.Pipe()\n"
              "meeting = tempfile.mkdtemp() + '/meeting'\n"
              "multiprocessing.get_context('fork').Process(target=serve, args=(meeting, theirs), daemon=True).start()\n"
              "made = join(0, meeting)\n",
          .body = "ours.send(count); take(made, count)"};
}

}  // namespace

python_program with_gloo(std::size_t bytes) {
  return in_two_with_gloo("def make():\n    t = torch.ones(" + std::to_string(bytes / sizeof(float)) +
                          ")\n"
                          "    dist.all_reduce(t)\n"
                          "    assert bool((t == 2).all())\n"
                          "    return t\n"
                          "def step(t): dist.all_reduce(t)\n");
}

python_program with_ddp(std::size_t parameters) {
  return in_two_with_gloo(
      "class Model(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        part = lambda: torch.nn.Parameter(torch.ones(" +
      std::to_string(parameters / 25) +
      "))\n"
      "        self.parts = torch.nn.ParameterList([part() for _ in range(25)])\n"
      "    def forward(self): return sum(part.sum() for part in self.parts)\n"
      "def make():\n"
      "    model = torch.nn.parallel.DistributedDataParallel(Model(), gradient_as_bucket_view=True)\n"
      "    return model, torch.optim.SGD(model.parameters(), lr=0.1)\n"
      "def step(made):\n"
      "    model, optimizer = made\n"
      "    optimizer.zero_grad(set_to_none=False)\n"
      "    model().backward()\n"
      "    optimizer.step()\n");
}

bool python_peer::is_there() { return std::filesystem::exists(interpreter); }

bool python_peer::has_torch() {
  return is_there() && std::system((std::string(interpreter) + " -c 'import torch' 2>/dev/null").c_str()) == 0;
}

python_peer::python_peer(const python_program& what) {
  auto to = make_pipe();
  auto from = make_pipe();
  const auto text = text_of(what);
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
