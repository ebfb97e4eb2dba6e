// SPDX-License-Identifier: BSL-1.0
// A call of a sum by Cap'n Proto, from one process to another, over a Unix socket: as its own calculator is written.
#include <cstdlib>
#include <string>

#include <capnp/ez-rpc.h>

#include "obey.hpp"
#include "sum.capnp.h"
#include "two_processes.hpp"

namespace {

class adder final : public Adder::Server {
  kj::Promise<void> add(AddContext context) override {
    const auto what = context.getParams();
    context.getResults().setValue(what.getA() + what.getB());
    return kj::READY_NOW;
  }
};

template <class Told>
void serve(const std::string& path, const Told& is_ready) {
  capnp::EzRpcServer server(kj::heap<adder>(), "unix:" + path);
  server.getPort().wait(server.getWaitScope());
  is_ready();
  kj::NEVER_DONE.wait(server.getWaitScope());
}

}  // namespace

int main() {
  const bench::two_processes both([](const std::string& path, const auto& is_ready) { serve(path, is_ready); });
  capnp::EzRpcClient client("unix:" + both.socket());
  auto far = client.getMain<Adder>();
  bench::obey([&](std::size_t count) {
    for (std::size_t each = 0; each < count; ++each) {
      auto request = far.addRequest();
      request.setA(2);
      request.setB(3);
      if (request.send().wait(client.getWaitScope()).getValue() != 5) std::abort();
    }
  });
}
