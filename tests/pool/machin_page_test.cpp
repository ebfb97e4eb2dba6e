// SPDX-License-Identifier: BSL-1.0
// Every line of code of docs/coming-from-machin.md, as it stands there; and that none is missing here.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cereal/archives/binary.hpp>

#include <muster/collectives/group_ticket.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params.hpp>
#include <muster/pool/ctx_pool.hpp>
#include <muster/pool/ctx_thread_pool.hpp>
#include <muster/pool/p2p_pool.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>
#include <muster/pool/thread.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>
#include <muster/rpc.hpp>

#include "page.hpp"
#include "processes.hpp"

namespace muster::machin_page_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

struct model {
  int weight = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(weight);
  }
};

int square(int x) { return x * x; }
int add(int a, int b) { return a + b; }
int score(model& mine, int x) { return x + 0 * mine.weight; }
float first_of(const tensor& given) { return given.at<float>(0); }
void fail_with(const std::string& why) { throw std::runtime_error(why); }
void fail() { throw std::runtime_error("no more"); }
class cleaner {
public:
  explicit cleaner(event clean) : clean_(std::move(clean)) {}
  cleaner(const cleaner&) = delete;
  cleaner& operator=(const cleaner&) = delete;
  ~cleaner() { clean_.set(); }

private:
  const event clean_;
};

TEST(MachinPage, Pools) {
  muster::pool pool({.workers = 4});
  const std::vector xs{1, 2, 3};
  std::vector<int> seen;
  const auto t = tensor::ones<float>({3});
  EXPECT_THAT(pool.map(muster::bind_front([](int y, int x) { return x + y; }, 5), xs), ElementsAre(6, 7, 8));
  EXPECT_EQ(pool.apply(first_of, t), 1);
  EXPECT_EQ(pool.with({.transfer = muster::transfer::copy}).apply(first_of, t), 1);
  EXPECT_EQ(muster::pool_options().workers, 0U);
  muster::pool fresh({.max_tasks_per_worker = 100});
  std::atomic<int> found = 0;
  const auto on_value = [&](int value) { found = value; };
  const auto on_error = [&](const auto&) { found = -1; };
  pool.apply_async(add, 2, 3).on_complete(on_value, on_error);
  EXPECT_TRUE(test::eventually([&] { return found == 5; }));
  for (int each : pool.with({.chunk = 10}).imap(square, xs)) seen.push_back(each);
  EXPECT_THAT(seen, ElementsAre(1, 4, 9));
  EXPECT_THAT(pool.starmap_async(add, std::vector<std::pair<int, int>>{{1, 2}}).get(), ElementsAre(3));
  auto results = pool.imap(square, xs);
  if (results.wait_for(1s)) results.next();
  EXPECT_EQ(pool.size(), 4U);
  pool.close();
  try {
    pool.apply(add, 2, 3);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const muster::error& failure) {
    EXPECT_TRUE(failure.code() == muster::errc::pool_closed);
  }
}

TEST(MachinPage, TheFamilyOfPools) {
  const std::vector xs{1, 2, 3};
  muster::p2p_pool lanes({.workers = 4});
  EXPECT_THAT(lanes.map(square, xs), ElementsAre(1, 4, 9));
  muster::ctx_pool<model> given(std::vector{model{1}, model{2}});
  EXPECT_THAT(given.map(score, xs), ElementsAre(1, 2, 3));
  EXPECT_GE(given.apply([](model& mine) { return mine.weight; }), 1);
  muster::ctx_pool<std::optional<model>> without([] { return std::optional<model>(); }, {.workers = 2});
  EXPECT_FALSE(without.apply([](const std::optional<model>& mine) { return mine.has_value(); }));
  muster::ctx_pool<model> made([](std::size_t worker) { return model{static_cast<int>(worker)}; }, {.workers = 2});
  EXPECT_EQ(made.on(1).apply([](model& mine) { return mine.weight; }), 1);
  muster::thread_pool threads({.workers = 4});
  EXPECT_EQ(threads.apply([&] { return xs.size(); }), 3U);
  muster::ctx_thread_pool<model> together(std::vector{model{1}, model{2}});
  EXPECT_THAT(together.map(score, xs), ElementsAre(1, 2, 3));
}

TEST(MachinPage, ProcessesThreadsAndEvents) {
  muster::process child(fail_with, std::string("no more"));
  child.join();
  try {
    child.watch();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& failure) {
    EXPECT_STREQ(failure.what(), "no more");
    EXPECT_NE(muster::remote_info(failure), nullptr);
  }
  {
    const muster::event done;
    muster::process cleaned(
        [](const muster::event& clean) {
          const cleaner at_the_end(clean);
          fail();
        },
        done);
    cleaned.join();
    EXPECT_THROW(cleaned.watch(), std::runtime_error);
    EXPECT_TRUE(done.is_set());
  }
  muster::thread beside([] { throw std::runtime_error("no more"); });
  beside.join();
  EXPECT_THROW({ beside.watch(); }, std::runtime_error);
  muster::event stop;
  const muster::event done;
  stop.set();
  EXPECT_TRUE(muster::any_of(stop, done).is_set());
  EXPECT_FALSE(muster::all_of(stop, done).is_set());
  EXPECT_TRUE(muster::any_of(stop, done).wait_for(1s));
}

TEST(MachinPage, Queues) {
  const auto t = tensor::ones<float>({3});
  muster::shared_queue<muster::tensor> queue(16);
  queue.push(t);
  queue.push(t);
  queue.push(t, muster::transfer::copy);
  EXPECT_EQ(first_of(*queue.pop_for(1s)), 1);
  EXPECT_TRUE(queue.pop());
  EXPECT_TRUE(queue.pop());
  EXPECT_TRUE(queue.size() == 0);
  queue.close();
  muster::p2p_queue<int> one_way(16);
  one_way.push(1);
  std::array ways{muster::p2p_queue<int>(16), muster::p2p_queue<int>(16)};
  ways[1].push(2);
  EXPECT_EQ(ways[0].size(), 0U);
}

TEST(MachinPage, FilesAreWrittenByTheSameMember) {
  std::stringstream file;
  cereal::BinaryOutputArchive{file}(model{1});
  model back;
  cereal::BinaryInputArchive{file}(back);
  EXPECT_EQ(back.weight, 1);
}

TEST(MachinPage, ExceptionsSayWhereTheyWereThrown) {
  muster::pool pool({.workers = 1});
  try {
    pool.apply(fail);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& failure) {
    EXPECT_NE(muster::remote_info(failure), nullptr);
  }
}

// A member function, which the page names as it is in `model`: serialize(archive).
struct counter {
  int value = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
  }
};

TEST(MachinPage, WorldAndRpcGroups) {
  const muster::rpc_ticket ticket("group", {"0", "1", "2"});
  const muster::rpc_ticket patient("patient", {"0"}, {.timeout = 60s});
  muster::rpc_group group(ticket, "0");
  const muster::rpc_group one(ticket, "1");
  const muster::rpc_group two(ticket, "2");
  EXPECT_THAT(group.members(), ElementsAre("0", "1", "2"));
  static_assert(std::is_class_v<muster::group_ticket>);
  EXPECT_EQ(group.call("1", add, 1, 2), 3);
  EXPECT_EQ(group.with({.deadline = 1s}).call("1", add, 1, 2), 3);
  EXPECT_EQ(group.call_async("1", add, 1, 2).get(), 3);
  EXPECT_EQ(group.remote("1", add, 1, 2).to_here(), 3);
  group.publish("key", counter{20});
  EXPECT_TRUE(group.is_published("key"));
  EXPECT_EQ(group.find<counter>("key").to_here().value, 20);
  EXPECT_EQ(one.wait_for<counter>("key").to_here().value, 20);
  group.withdraw("key");
  const auto add_to_20 = [](int x) { return 20 + x; };
  group.serve("add to 20", add_to_20);
  EXPECT_TRUE(group.is_served("add to 20"));
  EXPECT_EQ(group.call_service<int>("add to 20", 1), 21);
  EXPECT_EQ(group.service<int(int)>("add to 20")(1), 21);
  EXPECT_EQ(group.call_service_async<int>("add to 20", 1).get(), 21);
  EXPECT_EQ(group.remote_service<int>("add to 20", 1).to_here(), 21);
  group.unserve("add to 20");
  const std::jthread first([&] { one.barrier(); });
  const std::jthread second([&] { two.barrier(); });
  group.barrier(10s);
  EXPECT_EQ(group.members().size(), 3U);
  EXPECT_TRUE(group.is_member("1"));
  EXPECT_EQ(group.name(), "group");
  EXPECT_EQ(group.member(), "0");
  group.leave();
}

TEST(MachinPage, Servers) {
  muster::store_ticket box{muster::store_options()};
  muster::ordered_server values(box, "server", {.depth = 2});
  EXPECT_TRUE(values.push("w", 6, 1, std::nullopt));
  EXPECT_TRUE(values.push("w", 7, 2, 1));
  EXPECT_EQ(values.pull<int>("w")->version, 2);
  EXPECT_EQ(values.pull<int>("w", 2)->value, 7);
  static_assert(std::is_abstract_v<muster::versioned_store>);
  muster::state_dict weights({{"w", tensor::zeros<float>({2})}});
  EXPECT_EQ(weights.at("w").size(), 2U);
  const muster::model_server models(box, "models", "model");
  EXPECT_TRUE(models.push(weights));
  EXPECT_TRUE(models.push(weights, {.pull_on_fail = false}));
  EXPECT_TRUE(models.pull(weights));
}

TEST(MachinPage, GradientsAndPlacement) {
  muster::store_ticket box{muster::store_options()};
  const muster::rpc_ticket ticket("learners", {"0"});
  const muster::rpc_group group(ticket, "0");
  muster::state_dict weights({{"w", tensor::zeros<float>({2})}});
  const muster::state_dict gradients({{"w", tensor::ones<float>({2})}});
  auto kept = std::make_shared<muster::ordered_server>(box, "kept");
  muster::gradient_server learner(group, kept, "learner", {.primary = "0", .secondaries = {"0"}, .batch = 2});
  muster::gradient_options gradients_of_mean;
  gradients_of_mean.reduction = muster::gradient_reduction::mean;
  learner.manage(weights, muster::sgd{.rate = 0.1}, [](std::uint64_t step) { return 0.1 / static_cast<double>(step); });
  learner.start();
  EXPECT_TRUE(learner.push(gradients, weights).counted);
  learner.flush();
  EXPECT_TRUE(learner.pull(weights));
  EXPECT_FLOAT_EQ(weights.at("w").at<float>(0), -0.1F);
  learner.watch();
  learner.stop();
  EXPECT_EQ(muster::size_of(weights), 16U);
  const std::vector<muster::device_room> rooms{{.device = device::cuda(0), .free_bytes = 1000}};
  auto found = muster::assign({weights, gradients}, {{{0, 1}, 1.0}}, rooms);
  EXPECT_THAT(found.devices, ElementsAre(device::cuda(0), device::cuda(0)));
}

TEST(MachinPage, EveryLineOfItIsCompiledHere) {
  test::expect_compiled(MUSTER_DOCS "coming-from-machin.md", __FILE__, 40);
}

}  // namespace
}  // namespace muster::machin_page_test
