// SPDX-License-Identifier: BSL-1.0
// What rpc.cpp does wrong, done right.
#include <muster/rpc.hpp>

struct counter {
  explicit counter(int from) : value(from) {}
  int add(int by) { return value += by; }
  int value;
};

int add(int a, int b) { return a + b; }

void call(const muster::rpc_group& group) {
  group.call("b", add, 1, 2);
  group.serve("sum", add);
  group.serve<int(int)>("any", [](auto x) { return x; });
  const auto far = group.remote("b", [] { return counter(1); });
  far.call(&counter::add, 1);
  far.call([](counter& of, int by) { return of.add(by); }, 1);
  static_cast<void>(group.start<counter>("counter", {}, 1));
  group.call_service<int>("sum", 1, 2);
}
