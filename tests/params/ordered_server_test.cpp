// SPDX-License-Identifier: BSL-1.0
// Machin's numbers, and what it does not test. The model server runs over a store of files too.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cereal/archives/binary.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/model_server.hpp>
#include <muster/params/ordered_server.hpp>
#include <muster/pool/process.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"

namespace muster::ordered_server_test {
namespace {

using testing::Each;

TEST(OrderedServer, TakesThePushThatWasMadeFromTheNewest) {
  const ordered_server all(store_ticket(store_options()), "server", {.depth = 2});
  EXPECT_TRUE(all.push("a", std::string("v0"), 1, std::nullopt));
  EXPECT_FALSE(all.push("a", std::string("v1"), 2, 0));
  EXPECT_TRUE(all.push("a", std::string("v2"), 2, 1));
  EXPECT_TRUE(all.push("a", std::string("v3"), -1, 2)) << "versions need not grow";
  EXPECT_EQ(all.pull<std::string>("a")->value, "v3");
  EXPECT_EQ(all.pull<std::string>("a")->version, -1);
  EXPECT_EQ(all.pull<std::string>("a", 2)->value, "v2");
  EXPECT_FALSE(all.pull<std::string>("a", 1)) << "two are kept";
  EXPECT_FALSE(all.pull<std::string>("b"));
}

TEST(OrderedServer, OfDepthOneKeepsTheNewestOnly) {
  const ordered_server all(store_ticket(store_options()), "server");
  for (std::int64_t version = 1; version <= 3; ++version) {
    EXPECT_TRUE(all.push("a", version, version, version == 1 ? std::nullopt : std::optional(version - 1)));
  }
  EXPECT_EQ(all.pull<std::int64_t>("a")->value, 3);
  EXPECT_FALSE(all.pull<std::int64_t>("a", 2));
}

TEST(OrderedServer, TheSameVersionReplacesTheNewest) {
  const ordered_server all(store_ticket(store_options()), "server", {.depth = 3});
  EXPECT_TRUE(all.push("a", 10, 1, 7)) << "of a key that has no value any version is taken";
  EXPECT_TRUE(all.push("a", 20, 2, 1));
  EXPECT_TRUE(all.push("a", 21, 2, 2));
  EXPECT_EQ(all.pull<int>("a")->value, 21);
  EXPECT_EQ(all.pull<int>("a", 1)->value, 10) << "none was lost by that";
  EXPECT_TRUE(all.push("a", 11, 1, 2)) << "one that an older one has";
  EXPECT_EQ(all.pull<int>("a")->version, 1);
  EXPECT_EQ(all.pull<int>("a", 1)->value, 11);
  EXPECT_EQ(all.pull<int>("a", 2)->value, 21);
}

TEST(OrderedServer, ThoseOfOneNameAreOne) {
  const store_ticket box{store_options()};
  const ordered_server one(box, "server", {.depth = 2});
  const ordered_server same(box, "server", {.depth = 2});
  const ordered_server other(box, "other");
  EXPECT_TRUE(one.push("a", 1, 1, std::nullopt));
  EXPECT_EQ(same.pull<int>("a")->value, 1);
  EXPECT_FALSE(other.pull<int>("a"));
  EXPECT_THROW(ordered_server(box, "server"), error) << "another depth";
  EXPECT_THROW(static_cast<void>(same.pull<std::string>("a")), error) << "another type";
}

void add_up(const store_ticket& box, int times) {
  const ordered_server all(box, "server");
  for (int done = 0; done < times;) {
    const auto now = all.pull<int>("count");
    if (all.push("count", now->value + 1, now->version + 1, now->version)) ++done;
  }
}

// Each version is made from the one before.
TEST(OrderedServer, NoReadModifyWriteIsLost) {
  constexpr int clients = 4;
  constexpr int times = 250;
  const store_ticket box{store_options()};
  const ordered_server all(box, "server");
  ASSERT_TRUE(all.push("count", 0, 0, std::nullopt));
  std::vector<process> workers;
  for (int each = 0; each < clients; ++each) workers.emplace_back(add_up, box, times);
  for (const auto& each : workers) {
    each.join();
    EXPECT_NO_THROW(each.watch());
  }
  EXPECT_EQ(all.pull<int>("count")->value, clients * times);
  EXPECT_EQ(all.pull<int>("count")->version, clients * times);
}

// ---- models

state_dict model_of(float a, float b, float c) {
  return {{"a", tensor::full<float>({1}, a)}, {"b", tensor::full<float>({1}, b)}, {"c", tensor::full<float>({1}, c)}};
}

void add_one(const state_dict& to) {
  for (const auto& name : to.names()) accumulate(to.at(name), tensor::ones<float>(to.at(name).shape()));
}

/// A store of the program's: each model is a file.
class file_store final : public versioned_store {
public:
  bool push(const std::string& key, const state_dict& value, std::int64_t version,
            std::optional<std::int64_t> previous) override {
    const auto now = pull(key);
    if (now && now->version != previous) return false;
    std::ofstream out(files_.path() / key, std::ios::binary);
    cereal::BinaryOutputArchive archive(out);
    std::vector<std::string> names = value.names();
    archive(version, names);
    for (const auto& name : names) {
      const auto numbers = value.at(name).to_vector<float>();
      archive(numbers);
    }
    return true;
  }
  [[nodiscard]] std::optional<ordered_value<state_dict>> pull(const std::string& key) override {
    std::ifstream in(files_.path() / key, std::ios::binary);
    if (!in) return std::nullopt;
    cereal::BinaryInputArchive archive(in);
    std::int64_t version = 0;
    std::vector<std::string> names;
    archive(version, names);
    std::vector<std::pair<std::string, tensor>> all;
    for (const auto& name : names) {
      std::vector<float> numbers;
      archive(numbers);
      all.emplace_back(name, tensor::from(numbers));
    }
    return ordered_value<state_dict>{.value = state_dict(all), .version = version};
  }

private:
  test::temporary_directory files_;
};

class ModelServer : public testing::TestWithParam<bool> {
protected:
  static std::shared_ptr<versioned_store> make() {
    if (GetParam()) return std::make_shared<file_store>();
    return std::make_shared<ordered_server>(store_ticket(store_options()), "server");
  }
};

TEST_P(ModelServer, AnotherModelPullsWhatTenPushesHaveMade) {
  const model_server server(make());
  auto mine = model_of(1, 2, 3);
  EXPECT_FALSE(server.pull(mine)) << "there is none yet";
  for (int each = 0; each < 10; ++each) {
    add_one(mine);
    EXPECT_TRUE(server.push(mine));
  }
  auto other = model_of(0, 0, 0);
  EXPECT_TRUE(server.pull(other));
  EXPECT_EQ(other.at("a").at<float>(0), 11);
  EXPECT_EQ(other.at("b").at<float>(0), 12);
  EXPECT_EQ(other.at("c").at<float>(0), 13);
  EXPECT_EQ(other.version(), 10);
}

TEST_P(ModelServer, APushThatIsRefusedPullsTheNewestOrChangesNothing) {
  const model_server server(make());
  auto first = model_of(1, 1, 1);
  EXPECT_TRUE(server.push(first));
  auto late = model_of(5, 5, 5);
  EXPECT_FALSE(server.push(late, {.pull_on_fail = false}));
  EXPECT_EQ(late.at("a").at<float>(0), 5);
  EXPECT_EQ(late.version(), 0);
  EXPECT_FALSE(server.push(late));
  EXPECT_EQ(late.at("a").at<float>(0), 1);
  EXPECT_TRUE(server.push(late));
}

TEST_P(ModelServer, SeveralModelsAreInOneStore) {
  const auto all = make();
  const model_server actors(all, "actor");
  const model_server critics(all, "critic");
  auto actor = model_of(1, 1, 1);
  auto critic = model_of(2, 2, 2);
  EXPECT_TRUE(actors.push(actor));
  EXPECT_TRUE(critics.push(critic));
  EXPECT_TRUE(critics.pull(actor));
  EXPECT_EQ(actor.at("a").at<float>(0), 1) << "it is no newer";
  auto other = model_of(0, 0, 0);
  EXPECT_TRUE(critics.pull(other));
  EXPECT_EQ(other.at("a").at<float>(0), 2);
}

INSTANTIATE_TEST_SUITE_P(Over, ModelServer, testing::Bool(),
                         [](const auto& each) { return each.param ? "Files" : "OrderedServer"; });

// A model whose elements are all equal stays so, whichever process pushes.
void push_for_a_while(const store_ticket& box, int times) {
  const model_server server(box, "server");
  state_dict mine{{"w", tensor::zeros<float>({5000})}};
  server.pull(mine);
  for (int done = 0; done < times;) {
    add_one(mine);
    if (server.push(mine)) ++done;
    const auto found = mine.at("w").to_vector<float>();
    for (const float each : found) {
      if (each != found.front()) throw std::runtime_error("a torn model");
    }
  }
}

TEST(ModelServer, NoModelIsTorn) {
  const store_ticket box{store_options()};
  std::vector<process> workers;
  for (int each = 0; each < 3; ++each) workers.emplace_back(push_for_a_while, box, 100);
  for (const auto& each : workers) {
    each.join();
    EXPECT_NO_THROW(each.watch());
  }
  state_dict found{{"w", tensor::zeros<float>({5000})}};
  EXPECT_TRUE(model_server(box, "server").pull(found));
  EXPECT_THAT(found.at("w").to_vector<float>(), Each(300));
}

}  // namespace
}  // namespace muster::ordered_server_test
