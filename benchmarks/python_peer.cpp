// SPDX-License-Identifier: BSL-1.0
#include "python_peer.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace bench {

namespace {

// As told_program is told.
std::string text_of(const python_program& what) {
  return "import sys, time\n" + what.setup +
         "def do(count):\n"
         "    " +
         what.body +
         "\n"
         "def time_of_one():\n"
         "    start = time.perf_counter_ns()\n"
         "    do(1)\n"
         "    return time.perf_counter_ns() - start\n"
         "for line in sys.stdin:\n"
         "    count = int(line)\n"
         "    if count > 0: do(count)\n"
         "    print(*[time_of_one() for _ in range(-count)], flush=True)\n" +
         what.end;
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string found;
  for (int each = std::fgetc(pipe.get()); each != EOF && each != '\n'; each = std::fgetc(pipe.get())) {
    found += static_cast<char>(each);
  }
  return found;
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

namespace {

const std::string functions =
    "def add(a, b): return a + b\n"
    "def add_one(x): return x + 1\n";

}  // namespace

python_program with_loky(unsigned workers, const std::string& body) {
  return {.setup = functions +
                   "import loky\n"
                   "pool = loky.get_reusable_executor(max_workers=" +
                   std::to_string(workers) + ", timeout=None)\n",
          .body = body};
}

python_program with_mpire(unsigned workers, const std::string& body) {
  return {.setup = functions +
                   "import mpire\n"
                   "pool = mpire.WorkerPool(n_jobs=" +
                   std::to_string(workers) + ", keep_alive=True)\n",
          .body = body,
          .end = "pool.stop_and_join()\n"};
}

python_program with_ray(const std::string& body) {
  return {.setup =
              "import os\n"
              "os.environ['RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO'] = '0'\n"
              "import ray\n"
              "ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level='ERROR')\n"
              "@ray.remote\n"
              "class Adder:\n"
              "    def add(self, a, b): return a + b\n"
              "pool = Adder.remote()\n",
          .body = body};
}

python_program with_torch_rpc(const std::string& body) {
  return {.setup =
              "import multiprocessing, os, tempfile, torch\n"
              "import torch.distributed.rpc as rpc\n"
              "os.environ['GLOO_SOCKET_IFNAME'] = 'lo'\n"
              "os.environ['TP_SOCKET_IFNAME'] = 'lo'\n"
              "def add(a, b): return a + b\n"
              "meeting = 'file://' + tempfile.mkdtemp() + '/meeting'\n"
              "def join(name, rank):\n"
              "    how = rpc.TensorPipeRpcBackendOptions(init_method=meeting)\n"
              "    rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=how)\n"
              "def serve():\n"
              "    join('b', 1)\n"
              "    rpc.shutdown()\n"
              "multiprocessing.get_context('fork').Process(target=serve, daemon=True).start()\n"
              "join('a', 0)\n",
          .body = body,
          .end = "rpc.shutdown()\n"};
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

// MXNet asks for an older name of NumPy's.
python_program with_mxnet(std::size_t bytes, const std::string& body) {
  return {.setup =
              "import numpy\n"
              "numpy.bool = bool\n"
              "import mxnet as mx\n"
              "kv = mx.kv.create('local')\n"
              "shape = (" +
              std::to_string(bytes / sizeof(float)) +
              ",)\n"
              "kv.init('w', mx.nd.ones(shape))\n"
              "kv.set_optimizer(mx.optimizer.create('sgd', learning_rate=0.1))\n"
              "a, b, out = mx.nd.ones(shape), mx.nd.ones(shape), mx.nd.zeros(shape)\n",
          .body = body,
          .environment = "mxnet"};
}

std::string python_peer::interpreter(const std::string& environment) {
  const std::string of_peers = MUSTER_PEERS "/" + environment + "/bin/python3";
  return std::filesystem::exists(of_peers) ? of_peers : "/usr/bin/python3";
}

bool python_peer::has(const std::string& module, const std::string& environment) {
  return std::system((interpreter(environment) + " -c 'import " + module + "' >/dev/null 2>&1").c_str()) == 0;
}

std::string python_peer::version_of(const std::string& module) {
  return output_of(interpreter() +
                   " -c '\n"
                   "import importlib.metadata, platform\n"
                   "try: print(importlib.metadata.version(\"" +
                   module +
                   "\"))\n"
                   "except importlib.metadata.PackageNotFoundError: print(platform.python_version())'");
}

python_peer::python_peer(const python_program& what)
    : told_program({interpreter(what.environment), "-c", text_of(what)}) {}

}  // namespace bench
