// SPDX-License-Identifier: BSL-1.0
// A call of a sum by gRPC, from one process to another, over a Unix socket: as its own greeter is written.
#include <cstdlib>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "obey.hpp"
#include "sum.grpc.pb.h"
#include "two_processes.hpp"

namespace {

class adder final : public bench::Adder::Service {
  grpc::Status Add(grpc::ServerContext* /*context*/, const bench::Summands* what, bench::Sum* sum) override {
    sum->set_value(what->a() + what->b());
    return grpc::Status::OK;
  }
};

template <class Told>
void serve(const std::string& path, const Told& is_ready) {
  adder service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  is_ready();
  server->Wait();
}

void call(bench::Adder::Stub& far) {
  bench::Summands what;
  what.set_a(2);
  what.set_b(3);
  bench::Sum sum;
  grpc::ClientContext context;
  if (!far.Add(&context, what, &sum).ok() || sum.value() != 5) std::abort();
}

}  // namespace

int main() {
  const bench::two_processes both([](const std::string& path, const auto& is_ready) { serve(path, is_ready); });
  const auto far =
      bench::Adder::NewStub(grpc::CreateChannel("unix:" + both.socket(), grpc::InsecureChannelCredentials()));
  bench::obey([&](std::size_t count) {
    for (std::size_t each = 0; each < count; ++each) call(*far);
  });
}
