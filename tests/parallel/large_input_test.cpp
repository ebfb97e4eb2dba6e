// SPDX-License-Identifier: BSL-1.0
// As large_value_test.cpp, in worlds and groups.
#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <muster/collectives/group.hpp>
#include <muster/collectives/group_objects.hpp>
#include <muster/parallel/world.hpp>

#include "small_stacks.hpp"

namespace muster::large_input_test {
namespace {

using test::large_value;
using test::make_large;

large_value returned(const large_value& given) { return given; }

/// Four MiB.
struct giant {
  std::array<std::uint64_t, (4U << 20U) / sizeof(std::uint64_t)> numbers{};
};

TEST(LargeInputs, PassThroughWorlds) {
  test::run_on_small_stack([] {
    world w({.ranks = 2});
    const auto one = make_large(1);
    const auto f = w.function(returned, whole("value"), outputs(none("same")));
    for (const auto& each : f(*one)) EXPECT_TRUE(each.begins_with(1));
    for (const auto& each : f.async(*one).get()) EXPECT_TRUE(each.begins_with(1));
    for (const auto& each : f.local(*one)) EXPECT_TRUE(each.begins_with(1));
    const auto bound = w.function(bind_front([](const large_value& given) { return given.numbers.back(); }, *one),
                                  outputs(max("last")));
    EXPECT_EQ(bound(), one->numbers.back());
  });
}

TEST(LargeInputs, LargerOnesPassThroughWorldsByWhatOwnsThem) {
  test::run_on_small_stack([] {
    world w({.ranks = 2});
    const auto f =
        w.function([](const std::vector<giant>& given) { return given; }, whole("value"), outputs(none("same")));
    for (const auto& each : f(std::vector<giant>(1))) EXPECT_EQ(each.size(), 1U);
    const auto g = w.function([](const std::shared_ptr<giant>& given) { return given->numbers.size(); }, whole("value"),
                              outputs(sum("count")));
    EXPECT_EQ(g(std::make_shared<giant>()), 2 * std::tuple_size_v<decltype(giant::numbers)>);
  });
}

void exchange(group& ranks) {
  const auto own = make_large(static_cast<std::uint32_t>(ranks.rank()));
  const auto object = make_large(7);
  ranks.broadcast_object(*object, 0);
  EXPECT_TRUE(object->begins_with(7));
  EXPECT_EQ(ranks.gather_object(*own, 0).size(), ranks.rank() == 0 ? 2U : 0U);
  EXPECT_TRUE(ranks.all_gather_object(*own)[1].begins_with(1));
  if (ranks.rank() == 0) {
    ranks.send_object(*own, 1);
  } else {
    EXPECT_TRUE(ranks.recv_object<large_value>(0).begins_with(0));
  }
}

void scatter(group& ranks) {
  std::vector<large_value> parts;
  if (ranks.rank() == 0) parts = {*make_large(5), *make_large(6)};
  const auto found = ranks.scatter_object(parts, 0);
  EXPECT_TRUE(found.begins_with(static_cast<std::uint32_t>(5 + ranks.rank())));
}

TEST(LargeInputs, AreObjectsOfGroups) {
  test::run_on_small_stack([] {
    const group_ticket ticket(2);
    const auto take_part = [&ticket](std::size_t rank) {
      group ranks(ticket, rank);
      exchange(ranks);
      scatter(ranks);
    };
    std::thread other(take_part, 1);
    take_part(0);
    other.join();
  });
}

}  // namespace
}  // namespace muster::large_input_test
