// SPDX-License-Identifier: BSL-1.0
// One mistake, which INSIDE names, in calls of an RPC group.
#include <muster/rpc.hpp>

#define capture 1
#define pointer 2
#define generic_service 3
#define other_arguments 4
#define no_result 5
#define later 6
#define not_of_the_value 7
#define bound 8
#define no_such_actor 9

struct counter {
  explicit counter(int from) : value(from) {}
  int add(int by) { return value += by; }
  int value;
};

void call(const muster::rpc_group& group, const muster::remote_ref<counter>& far) {
#if INSIDE == capture
  int more = 1;
  group.call("b", [more](int x) { return x + more; }, 1);
#elif INSIDE == pointer
  int value = 1;
  group.call("b", [](int* x) { return *x; }, &value);
#elif INSIDE == generic_service
  group.serve("any", [](auto x) { return x; });
#elif INSIDE == other_arguments
  group.serve<int(int)>("any", [](int a, int b) { return a + b; });
#elif INSIDE == no_result
  static_cast<void>(group.remote("b", [] {}));
#elif INSIDE == later
  static_cast<void>(group.remote("b", [] { return muster::future<int>(); }));
#elif INSIDE == not_of_the_value
  far.call([](int by) { return by; }, 1);
#elif INSIDE == bound
  far.call(muster::bind_front(&counter::add, 1));
#elif INSIDE == no_such_actor
  static_cast<void>(group.start<counter>("counter", {}, "no number"));
#endif
}
