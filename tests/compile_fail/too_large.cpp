// SPDX-License-Identifier: BSL-1.0
// Values that are too large to cross by themselves, in each way that there is, all in one source, because its headers
// take long to read. Each way has a type of its own, and each type gives one error: Clang's -verify counts them.
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <muster/async/when_all.hpp>
#include <muster/collectives/group.hpp>
#include <muster/collectives/group_objects.hpp>
#include <muster/parallel/world.hpp>
#include <muster/pool/ctx_pool.hpp>
#include <muster/pool/p2p_pool.hpp>
#include <muster/pool/process.hpp>
#include <muster/pool/this_pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/process/join.hpp>
#include <muster/process/listener.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

using namespace muster;

template <int Way>
struct large {
  std::array<std::byte, max_value_bytes + 1> bytes;
};
template <int Way>
struct half {
  std::array<std::byte, max_value_bytes / 2 + 1> bytes;
};
struct with_map {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(all);
  }
  std::map<int, large<1000>> all;
};

template <class T>
void take(const T& value);
template <class T>
T give();

// expected-error@*:* 41 {{muster: a value of more than 256 KiB (muster::max_value_bytes)}}

void to_processes(const pool& processes, const p2p_pool& dealt) {
  processes.apply(take<large<0>>, large<0>());
  (void)processes.apply_async([](large<1>) {}, large<1>());
  processes.apply(give<large<2>>);
  processes.apply(bind_front(take<large<3>>, large<3>()));
  processes.map(take<large<4>>, std::vector<large<4>>());
  processes.map([](int) { return large<5>(); }, std::vector<int>());
  processes.starmap([](const half<6>&, const half<6>&) {}, std::vector<std::pair<half<6>, half<6>>>());
  (void)processes.imap(take<large<7>>, std::vector<large<7>>());
  (void)processes.feed<large<8>>(take<large<8>>);
  processes.broadcast(take<large<9>>, large<9>());
  processes.collect_errors().map(take<large<10>>, std::vector<large<10>>());
  processes.on(0).apply(take<large<11>>, large<11>());
  dealt.apply(take<large<12>>, large<12>());
  (void)process(take<large<13>>, large<13>());
  this_pool::apply(take<large<14>>, large<14>());
  processes.map(bind_front([](const large<15>&, int) {}, large<15>()), std::vector<int>());
  (void)processes.apply_async([] { return 1; }).then([](int) { return large<16>(); });
  (void)worker_task(bind_front(take<large<17>>, large<17>()));
  (void)ctx_pool<large<18>>(std::vector<large<18>>());
  (void)when_all(processes.apply_async(give<half<19>>), processes.apply_async(give<half<19>>));
}

void to_threads(const thread_pool& threads) {
  threads.apply(take<large<20>>, large<20>());
  threads.apply(give<large<21>>);
  threads.map(take<large<22>>, std::vector<large<22>>());
  threads.map([](int) { return large<23>(); }, std::vector<int>());
  (void)threads.imap(take<large<24>>, std::vector<large<24>>());
  (void)threads.feed<large<25>>(take<large<25>>);
  threads.broadcast(take<large<26>>, large<26>());
}

void to_queues_and_groups(group& ranks) {
  (void)shared_queue<large<30>>(1);
  (void)p2p_queue<large<31>>(1);
  large<32> object;
  ranks.broadcast_object(object, 0);
  (void)ranks.gather_object(large<33>(), 0);
  (void)ranks.all_gather_object(large<34>());
  (void)ranks.scatter_object(std::vector<large<35>>(), 0);
  ranks.send_object(large<36>(), 0);
  (void)ranks.recv_object<large<37>>(0);
}

void in_worlds(world& w) {
  (void)w.function(take<large<40>>, whole("value"));
  (void)w.function(give<large<41>>, outputs(none("value")));
  (void)w.function(bind_front(take<large<42>>, large<42>()));
}

void inside_of_others(const pool& processes) {
  processes.apply(take<std::array<large<50>, 1>>, std::array<large<50>, 1>());
  processes.apply(take<std::tuple<int, large<51>>>, std::tuple<int, large<51>>());
  processes.apply(take<std::optional<large<52>>>, std::optional<large<52>>());
}

// expected-error@*:* 5 {{muster: the arguments, bound values and captures of one call have more than 256 KiB together}}

void together(const pool& processes, const thread_pool& threads, world& w) {
  processes.apply([](const half<60>&, const half<60>&) {}, half<60>(), half<60>());
  processes.apply(bind_front([](const half<61>&, const half<61>&) {}, half<61>()), half<61>());
  processes.apply(trivial_capture([captured = large<62>()] { return captured.bytes.size(); }));
  threads.apply([captured = large<63>()] { return captured.bytes.size(); });
  (void)w.function([](const half<64>&, const half<64>&) {}, whole("one", "other"));
}

// expected-error@*:* 3 {{muster: a map or set has elements of more than 256 KiB (muster::max_value_bytes)}}

void in_maps(const pool& processes) {
  processes.apply(take<std::map<int, large<70>>>, std::map<int, large<70>>());
  processes.apply(take<std::vector<std::set<large<71>>>>, std::vector<std::set<large<71>>>());
  processes.apply(take<with_map>, with_map());
}

static_assert(!transportable<large<80>> && !transportable<std::map<int, large<80>>>);
static_assert(transportable<std::vector<large<80>>> && transportable<std::unique_ptr<large<80>>>);
static_assert(transportable<std::array<std::byte, max_value_bytes>>);

// expected-error@*:* 0+ {{}}
// expected-note@*:* 0+ {{}}
