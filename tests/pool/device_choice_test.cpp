// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/device_choice.hpp>

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "made_up_gpus.hpp"

namespace muster::device_choice_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto first = device::cuda(0);
constexpr auto second = device::cuda(1);
constexpr auto third = device::cuda(2);

/// A made-up machine, and an environment that says nothing of devices.
class DeviceChoice : public testing::Test {
protected:
  [[nodiscard]] std::vector<device_assignment> resolve(const device_choice& made) const {
    return made.on_machine(machine_.root()).resolve();
  }
  // Of each worker, CUDA_VISIBLE_DEVICES.
  [[nodiscard]] std::vector<std::string> visible(const device_choice& made) const {
    const std::string prefix = "CUDA_VISIBLE_DEVICES=";
    std::vector<std::string> found;
    for (const auto& each : resolve(made)) {
      EXPECT_TRUE(each.environment.at(0).starts_with(prefix)) << each.environment[0];
      found.push_back(each.environment[0].substr(prefix.size()));
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> all_visible() const { return visible(device_choice::automatic()); }
  [[nodiscard]] std::string why_not(const device_choice& made) const {
    return why([&] { static_cast<void>(resolve(made)); });
  }
  static std::string why(const std::function<void()>& refused) {
    try {
      refused();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::invalid_argument);
      return failure.what();
    }
    return "accepted";
  }

  test::made_up_gpus machine_;
  const test::variable visible_{"CUDA_VISIBLE_DEVICES"};
  const test::variable order_{"CUDA_DEVICE_ORDER"};
};

TEST_F(DeviceChoice, ByDefaultNobodyHasADevice) {
  EXPECT_THAT(resolve({}), IsEmpty());
  machine_.add_three();
  EXPECT_THAT(resolve({}), IsEmpty());
}

TEST_F(DeviceChoice, AWorkersOwnDeviceComesFirstAndItsPeersInTurn) {
  machine_.add_three();
  EXPECT_THAT(visible({first, second, third}), ElementsAre("0,1,2", "1,2,0", "2,0,1"));
  EXPECT_EQ(resolve({first, second, third})[1].device, second) << "as the program names it";
}

TEST_F(DeviceChoice, OnlyDevicesOfTheChoiceAreSeen) {
  machine_.add_three();
  EXPECT_THAT(visible({third, first}), ElementsAre("2,0", "0,2"));
  EXPECT_THAT(visible({second}), ElementsAre("1"));
}

TEST_F(DeviceChoice, ADeviceThatIsNamedTwiceGetsTwoWorkers) {
  machine_.add_three();
  EXPECT_THAT(visible({first, first, second}), ElementsAre("0,1", "0,1", "1,0"));
}

TEST_F(DeviceChoice, AutomaticIsAllOfThem) {
  machine_.add_three();
  EXPECT_THAT(all_visible(), ElementsAre("0,1,2", "1,2,0", "2,0,1"));
}

TEST_F(DeviceChoice, DevicesAreCountedByAddress) {
  machine_.add("10000:01:00.0", 0, "GPU-a");
  machine_.add("0000:43:00.0", 1, "GPU-b");
  machine_.add("0000:1b:00.0", 2, "GPU-c");
  machine_.place("0000:1b:00.0", {});
  visible_.set("GPU-c,GPU-b,GPU-a");
  EXPECT_THAT(visible({first, second, third}),
              ElementsAre("GPU-c,GPU-b,GPU-a", "GPU-b,GPU-a,GPU-c", "GPU-a,GPU-c,GPU-b"));
  visible_.set("2,0");
  EXPECT_THAT(all_visible(), ElementsAre("2,0", "0,2"));
}

TEST_F(DeviceChoice, CountingByAddressIsSaidToCudaUnlessTheProgramSaysOtherwise) {
  machine_.add_three();
  EXPECT_THAT(resolve({first})[0].environment, testing::Contains("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  order_.set("FASTEST_FIRST");
  EXPECT_THAT(resolve({first})[0].environment, ElementsAre("CUDA_VISIBLE_DEVICES=0"));
}

// ---- what the program itself is shown

TEST_F(DeviceChoice, NumbersAreThoseThatTheProgramSees) {
  machine_.add_three();
  visible_.set("2,0");
  EXPECT_THAT(visible({first, second}), ElementsAre("2,0", "0,2"));
  EXPECT_THAT(why_not({third}), AllOf(HasSubstr("cuda:2"), HasSubstr("'2,0' shows 2"), HasSubstr("cuda:0 to cuda:1")));
}

TEST_F(DeviceChoice, WhatFollowsAnEntryThatNamesNothingDoesNotCount) {
  machine_.add_three();
  for (const auto* const list : {"0,2,-1,1", "0,2,3,1", "0, 2 ,,1", "0,2,GPU-aaaa2222"}) {
    visible_.set(list);
    EXPECT_THAT(all_visible(), ElementsAre("0,2", "2,0")) << list;
  }
}

TEST_F(DeviceChoice, AnEntryThatIsThereTwiceLeavesNothing) {
  machine_.add_three();
  for (const auto* const list : {"0,1,0", "GPU-aaaa1111,GPU-aaaa1111-0000", "MIG-x,MIG-x"}) {
    visible_.set(list);
    EXPECT_THAT(why_not(device_choice::automatic()), HasSubstr("shows none")) << list;
  }
}

TEST_F(DeviceChoice, NoneIsShownWhereTheListIsEmpty) {
  machine_.add_three();
  visible_.set("");
  EXPECT_THAT(why_not(device_choice::automatic()), AllOf(HasSubstr("3 GPUs"), HasSubstr("shows none")));
  EXPECT_THAT(why_not({first}), AllOf(HasSubstr("cuda:0"), HasSubstr("shows none")));
}

TEST_F(DeviceChoice, DevicesAreAlsoListedByTheBeginningOfTheirUuid) {
  machine_.add_three();
  visible_.set("GPU-bbbb,GPU-aaaa2");
  EXPECT_THAT(all_visible(),
              ElementsAre("GPU-bbbb3333-0000-0000-0000-000000000000,GPU-aaaa2222-0000-0000-0000-000000000000",
                          "GPU-aaaa2222-0000-0000-0000-000000000000,GPU-bbbb3333-0000-0000-0000-000000000000"));
  visible_.set("GPU-bbbb,GPU-aaaa");  // which may be two
  EXPECT_THAT(all_visible(), ElementsAre("GPU-bbbb3333-0000-0000-0000-000000000000"));
  visible_.set("GPU-cccc");
  EXPECT_THAT(why_not(device_choice::automatic()), HasSubstr("shows none"));
}

TEST_F(DeviceChoice, AUuidThatTheMachineDoesNotTellIsTakenForRight) {
  const std::string unknown(8, '?');
  machine_.add("0000:1b:00.0", 0, "GPU-" + unknown);
  visible_.set("GPU-12345678");
  EXPECT_THAT(all_visible(), ElementsAre("GPU-12345678"));
}

TEST_F(DeviceChoice, InstancesOfADeviceAreDevices) {
  machine_.add_three();
  visible_.set("MIG-1111,MIG-GPU-bbbb3333-0000-0000-0000-000000000000/1/0");
  machine_.place("0000:a2:00.0", {});
  EXPECT_THAT(all_visible(), ElementsAre("MIG-1111,MIG-GPU-bbbb3333-0000-0000-0000-000000000000/1/0",
                                         "MIG-GPU-bbbb3333-0000-0000-0000-000000000000/1/0,MIG-1111"));
}

TEST_F(DeviceChoice, ADeviceThatTheDriverIsToLeaveAloneIsNone) {
  machine_.add("0000:1b:00.0", 0, "GPU-a", "Yes");
  machine_.add("0000:43:00.0", 1, "GPU-b");
  EXPECT_THAT(all_visible(), ElementsAre("0"));
}

TEST_F(DeviceChoice, OfWhatAContainerIsToldWithoutHavingItNothingIsTaken) {
  machine_.add_three();
  machine_.add_file("nvidia2");
  machine_.add_file("nvidiactl");
  EXPECT_THAT(all_visible(), ElementsAre("0"));
  EXPECT_THAT(why_not({second}), AllOf(HasSubstr("1 GPU"), HasSubstr("possible is cuda:0")));
}

TEST_F(DeviceChoice, WhereTheDriverSaysNothingItsFilesAreCounted) {
  for (const auto* const name : {"nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "null"}) machine_.add_file(name);
  EXPECT_THAT(all_visible(), ElementsAre("0,1", "1,0"));
}

// ---- where they are

TEST_F(DeviceChoice, WorkersRunNearTheirDeviceWhereTheMachineTells) {
  const auto mine = allowed_cpus();
  if (mine.size() < 2) GTEST_SKIP() << "this program may use one processor only";
  machine_.add_three();
  machine_.place("0000:1b:00.0", {mine.front(), mine.back() + 1});
  machine_.place("0000:43:00.0", {mine.back() + 1});  // which this program may not use
  const auto found = resolve({first, second, third, first});
  EXPECT_THAT(found[0].cpus, ElementsAre(mine.front()));
  EXPECT_THAT(found[1].cpus, IsEmpty());
  EXPECT_THAT(found[2].cpus, IsEmpty());
  EXPECT_THAT(found[3].cpus, ElementsAre(mine.front()));
}

TEST_F(DeviceChoice, WhereAllIsNearNobodyIsBound) {
  machine_.add_three();
  machine_.place("0000:1b:00.0", allowed_cpus());
  EXPECT_THAT(resolve({first})[0].cpus, IsEmpty());
}

TEST_F(DeviceChoice, WhereCudaCountsInAnotherWayNobodyKnowsWhatIsNear) {
  const auto mine = allowed_cpus();
  if (mine.size() < 2) GTEST_SKIP() << "this program may use one processor only";
  machine_.add_three();
  machine_.place("0000:1b:00.0", {mine.front()});
  order_.set("FASTEST_FIRST");
  EXPECT_THAT(resolve({first})[0].cpus, IsEmpty());
  visible_.set("GPU-aaaa1111");
  EXPECT_THAT(resolve({first})[0].cpus, ElementsAre(mine.front())) << "by its name it is known";
}

TEST_F(DeviceChoice, WhatSomebodyElseUsesIsSeenBehindTheOthers) {
  machine_.add_three();
  EXPECT_THAT(visible(device_choice({third}).choosing({second, third}, {first, second})),
              ElementsAre("1,2,0", "2,0,1"));
}

// ---- what is refused

TEST_F(DeviceChoice, AutomaticWithoutDevicesSaysWhatWasLookedForAndWhatToDo) {
  EXPECT_THAT(why_not(device_choice::automatic()),
              AllOf(HasSubstr("pool_options::devices"), HasSubstr("proc/driver/nvidia/gpus"), HasSubstr("dev/nvidia0"),
                    HasSubstr("--gpus all")));
}

TEST_F(DeviceChoice, ADeviceThatIsNotThereIsRefusedByNameWithThoseThatAre) {
  EXPECT_THAT(why_not({first}), AllOf(HasSubstr("cuda:0 was asked for"), HasSubstr("there is no GPU")));
  machine_.add_three();
  EXPECT_THAT(why_not({first, device::cuda(7)}),
              AllOf(HasSubstr("cuda:7 was asked for"), HasSubstr("3 GPUs"), HasSubstr("cuda:0 to cuda:2")));
}

TEST_F(DeviceChoice, TheHostAndEmptyListsAreRefusedAtOnce) {
  EXPECT_THAT(why([] { static_cast<void>(device_choice{device::cpu()}); }), HasSubstr("cpu was given"));
  EXPECT_THAT(why([] { static_cast<void>(device_choice(std::vector<device>())); }), HasSubstr("empty list"));
}

}  // namespace
}  // namespace muster::device_choice_test
