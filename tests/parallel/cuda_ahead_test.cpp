// SPDX-License-Identifier: BSL-1.0
// Inputs of worlds on devices: pinned while calls have them again and again, and copied while the slice before theirs
// is computed.
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <muster/cuda/cuda_device.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/parallel/world.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "gpu_fixture.hpp"
#include "gpus_here.hpp"
#include "world_support.hpp"

namespace muster::cuda_ahead_test {
namespace {

using namespace std::chrono_literals;

constexpr unsigned slices = 4;
constexpr std::size_t width = 8192;   // a row of it is 32 KiB
constexpr std::size_t rows_each = 8;  // of a rank

struct form {
  unsigned ranks;
  test::caller who;
  bool is_late;
};

std::string name_of(const testing::TestParamInfo<form>& info) {
  constexpr std::array callers = {"First", "Last", "None"};
  return std::to_string(info.param.ranks) + "Ranks" + callers.at(static_cast<std::size_t>(info.param.who)) +
         (info.param.is_late ? "Late" : "");
}

class Ahead : public test::gpu_test, public testing::WithParamInterface<form> {
protected:
  void SetUp() override {
    if (GetParam().is_late) late_.emplace(5U);
    test::gpu_test::SetUp();
  }
  [[nodiscard]] world_options on_devices() const {
    auto made = test::options_for(GetParam().ranks, GetParam().who);
    made.devices = gpus_.all();
    made.call_timeout = 20s;
    made.log = [](log_level /*level*/, std::string_view /*text*/) {};
    return made;
  }
  // The last rank; not the program, if there is another.
  [[nodiscard]] static std::size_t some_worker() {
    return GetParam().who == test::caller::last ? 0 : GetParam().ranks - 1;
  }
  [[nodiscard]] static bool has_workers() { return GetParam().ranks > 1 || GetParam().who == test::caller::none; }
  [[nodiscard]] static tensor input(std::uint32_t seed = 1) {
    return test::noise({rows_each * GetParam().ranks, width}, seed);
  }

  const test::gpus_here gpus_;
  std::optional<test::late_streams> late_;
};

using AheadKills = test::gives_memory_back<Ahead>;

tensor twice(const tensor& x) {
  const auto made = x.clone();
  scale(made, 2);
  return made;
}

// What a rank's process has seen when a slice began.
constexpr auto looks = [](const rank_context& context, const tensor& x, int /*how*/) {
  const test::fake_cuda counted;
  const auto memory = cuda_device::open(context.device)->memory();
  return std::tuple(counted.copied(fake_cuda_uploads), counted.live(fake_cuda_registrations),
                    memory.held_bytes - memory.unused_bytes, x.row(0).to(device::cpu()));
};

auto looking(world& w) {
  return w.function(looks, rows("x"), whole("how"),
                    outputs(none("uploaded"), none("pinned"), none("used"), none("first")));
}

void expect_first_rows(const std::vector<tensor>& found, const tensor& x) {
  ASSERT_EQ(found.size() * 2, x.rows());
  for (std::size_t each = 0; each < found.size(); ++each) EXPECT_TRUE(equal(found[each], x.row(2 * each))) << each;
}

TEST_P(Ahead, AnyInputGivesWhatItGivesWithoutSlices) {
  world w(on_devices());
  auto f =
      w.function([](const tensor& x, const tensor& y, const tensor& z) { return std::tuple(x, twice(y), twice(z)); },
                 rows("x", "y", "z"), outputs(gather("x"), gather("y"), gather("z")));
  const auto count = rows_each * w.ranks();
  const auto x = input();
  const auto wide = test::noise({count, 2 * width}, 2);
  const auto y = wide.slice(0, width, 1);
  const auto z = test::noise({count, 3}, 3);
  for (const unsigned parts : {1U, slices, 3U, 1U, 20U, slices}) {
    SCOPED_TRACE(parts);
    x.copy_from(input(100 + parts));  // where it was
    const auto [first, second, third] = f.with({.num_slices = parts})(x, y, z);
    EXPECT_TRUE(equal(first, x));
    EXPECT_TRUE(equal(second, twice(y)));
    EXPECT_TRUE(equal(third, twice(z)));
  }
}

TEST_P(Ahead, RowsOfARangeOrAListAreThoseThatWereChosen) {
  world w(on_devices());
  auto f = w.function([](const tensor& x) { return twice(x); }, rows("x"), outputs(gather("x")));
  const auto x = input();
  const auto expected = twice(x);
  const std::vector<std::int64_t> list = {7, 0, 3, 3, 1, 6};
  for (unsigned times = 0; times < 3; ++times) {
    EXPECT_TRUE(equal(f.with({.batch = row_range{1, 7}, .num_slices = 3})(x), expected.slice(1, 7)));
    const auto found = f.with({.batch = list, .num_slices = 2})(x);
    ASSERT_EQ(found.rows(), list.size());
    for (std::size_t row = 0; row < list.size(); ++row) {
      EXPECT_TRUE(equal(found.row(row), expected.row(static_cast<std::size_t>(list[row]))));
    }
  }
}

TEST_P(Ahead, AnInputIsPinnedFromTheSecondCallThatHasItUntilOneThatHasNot) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "nobody counts what a real driver was told of";
  world w(on_devices());
  auto f = looking(w);
  const auto x = input(1);
  const auto y = input(2);
  const auto pinned_with = [&](const tensor& given) {
    const auto [uploaded, pinned, used, first] = f.with({.num_slices = slices})(given, 0);
    expect_first_rows(first, given);
    for (const auto each : pinned) EXPECT_EQ(each, pinned[0]);
    return pinned[0];
  };
  const auto none = pinned_with(x);
  EXPECT_EQ(pinned_with(x), none + 1);
  EXPECT_EQ(pinned_with(x), none + 1);
  EXPECT_EQ(pinned_with(y), none + 1) << "until that call's end";
  EXPECT_EQ(pinned_with(x), none);
  EXPECT_EQ(pinned_with(x), none + 1);
  const auto small = test::noise({rows_each * w.ranks(), 2});
  pinned_with(small);
  EXPECT_EQ(pinned_with(small), none) << "small ones are not worth it";
}

TEST_P(Ahead, WhatIsPinnedIsCopiedASliceAheadAndNoMore) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "nobody counts what a real driver copies";
  world w(on_devices());
  auto f = looking(w);
  const auto x = input();
  const auto slice_bytes = x.nbytes() / w.ranks() / slices;
  const auto [uploaded, pinned, used, first] = f.with({.num_slices = slices})(x, 0);
  const auto [uploaded_again, pinned_again, used_again, first_again] = f.with({.num_slices = slices})(x, 0);
  expect_first_rows(first, x);
  expect_first_rows(first_again, x);
  for (std::size_t each = 0; each < uploaded.size(); ++each) {
    const auto slice = each % slices;
    const auto begin = each - slice;
    const auto all_before = std::min<std::size_t>(slice + 1, slices - 1);
    EXPECT_EQ(uploaded[each] - uploaded[begin], slice * slice_bytes);
    EXPECT_EQ(uploaded_again[each] - uploaded_again[begin], (all_before - 1) * slice_bytes);
    EXPECT_EQ(used[each], used[begin]);
    EXPECT_EQ(used_again[each], used[each] + (slice + 1 < slices ? slice_bytes : 0));
  }
}

TEST_P(Ahead, NeitherTheHostNorACopyWaitsForTheSliceThatIsComputed) {
  world w(on_devices());
  // Each slice's stream waits until the next slice's function is called.
  auto f = w.function(
      [](const rank_context& context, const tensor& x, bool waits, const tensor& word) {
        const auto gpu = cuda_device::open(context.device);
        const cuda_device::scope current(*gpu);
        const auto& driver = gpu->driver();
        const auto count = context.slice + 1;
        const cuda_stream beside(driver);
        if (waits) driver.stream_write_value(beside.handle(), word.device_address(), context.slice, 0);
        if (waits && count < context.slices) {
          driver.stream_wait_value(gpu->compute().handle(), word.device_address(), count, CU_STREAM_WAIT_VALUE_GEQ);
        }
        beside.synchronize();
        return std::tuple(x, twice(x));  // the first slice's is kept until the last one has come
      },
      rows("x"), whole("waits", "word"), outputs(max("x"), max("twice")));
  const auto word = tensor::zeros<std::int64_t>({1});
  const auto x = input();
  const auto expected = x.slice(0, 2).clone();
  for (std::size_t row = 2; row < x.rows(); row += 2) accumulate(expected, x.slice(row, row + 2), element_op::max);
  for (const bool waits : {false, true, true}) {
    const auto [most, twice_most] = f.with({.num_slices = slices})(x, waits, word);
    EXPECT_TRUE(equal(most, expected));
    EXPECT_TRUE(equal(twice_most, twice(expected)));
  }
}

TEST_P(Ahead, AFunctionThatFailsLeavesNothingPinnedAndTheNextCallGoesOn) {
  world w(on_devices());
  const test::fake_cuda fake;
  auto f = w.function(
      [](const rank_context& context, const tensor& x, int failing) {
        if (static_cast<int>(context.slice) == failing) throw std::runtime_error("on purpose");
        return twice(x);
      },
      rows("x"), whole("failing"), outputs(gather("x")));
  auto look = looking(w);
  const auto x = input();
  for (const int failing : {-1, -1, 0, -1, -1, 2, -1, -1, 3}) {
    x.copy_from(input(static_cast<std::uint32_t>(failing + 10)));
    if (failing < 0) {
      EXPECT_TRUE(equal(f.with({.num_slices = slices})(x, failing), twice(x)));
    } else {
      EXPECT_THROW(f.with({.num_slices = slices})(x, failing), error);
    }
  }
  if (!fake.is_there()) return;
  const auto y = input(2);
  const auto z = input(3);
  look(y, 0);  // a rank that had not begun the call that failed has kept what it had pinned before
  const auto [uploaded, pinned, used, first] = look(z, 0);
  for (const auto each : pinned) EXPECT_EQ(each, 0U);
}

TEST_P(AheadKills, RanksThatAreKilledAtAnyTimeLeaveTheInputsToTheNextCall) {
  if (!has_workers()) GTEST_SKIP() << "the program itself is the only rank";
  world w(on_devices());
  auto f = w.function([](const tensor& x) { return twice(x); }, rows("x"), outputs(gather("x")));
  const auto x = input();
  const auto expected = twice(x);
  auto moments = std::minstd_rand(1);
  const auto succeeds = [&](const auto& wait) {
    try {
      wait();
      EXPECT_TRUE(equal(f.with({.num_slices = slices})(x), expected));
      return true;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::worker_died) << failure.what();
      return false;
    }
  };
  const auto nothing = [] {};
  for (int times = 0; times < 12; ++times) {
    static_cast<void>(succeeds(nothing));  // who was killed after the last call is missed only now
    EXPECT_TRUE(succeeds(nothing));
    const auto process = w.pids()[some_worker()];
    auto result = f.with({.num_slices = slices}).async(x);
    for (auto left = moments() % 2000; left > 0; --left) ::sched_yield();
    ::kill(process, SIGKILL);
    static_cast<void>(succeeds([&] { EXPECT_TRUE(equal(result.get(), expected)); }));
  }
}

TEST_P(Ahead, WhatCannotBePinnedIsCopiedAsBefore) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "a real machine has room for more pages";
  world w(on_devices());
  auto refuse = w.function([] { test::fake_cuda().fail("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY); });
  auto f = looking(w);
  const auto x = input();
  refuse();
  for (int times = 0; times < 3; ++times) {
    const auto [uploaded, pinned, used, first] = f.with({.num_slices = slices})(x, 0);
    expect_first_rows(first, x);
    for (const auto each : pinned) EXPECT_EQ(each, 0U) << times;
  }
  test::fake_cuda().no_failures();
}

TEST(AheadInALittleMemory, SlicesGoOneAfterTheOtherWhereTheDeviceHasNoRoomForTwo) {
  if (cuda_driver::problem() || !test::fake_cuda().is_there())
    GTEST_SKIP() << "a real device is not full when it is to be";
  const test::gpus_here gpus;
  world w({.ranks = 1, .devices = gpus.all(), .caller_computes = false, .log = {}});
  auto f = w.function(
      [](const rank_context& context, const tensor& x, bool fills_up) {
        const test::fake_cuda driver;
        const auto uploaded = driver.copied(fake_cuda_uploads);
        // Two tries, of the next call.
        const bool is_last = context.slice + 1 == context.slices;
        for (int tries = 0; fills_up && is_last && tries < 2; ++tries) {
          driver.fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
        }
        return std::tuple(uploaded, x.row(0).slice(0, 5).to(device::cpu()));
      },
      rows("x"), whole("fills up"), outputs(none("uploaded"), none("first")));
  constexpr std::size_t slice_bytes = std::size_t{34} << 20U;  // two do not lie in one extent
  const auto x = tensor::zeros<float>({2, slice_bytes / sizeof(float)});
  for (std::size_t row = 0; row < 2; ++row)
    x.row(row).slice(0, 5).copy_from(test::noise({5}, 7 + 3 * static_cast<std::uint32_t>(row)));
  const auto ahead = [&](bool fills_up) {
    const auto [uploaded, first] = f.with({.num_slices = 2})(x, fills_up);
    for (std::size_t row = 0; row < 2; ++row) EXPECT_TRUE(equal(first[row], x.row(row).slice(0, 5)));
    return slice_bytes - (uploaded[1] - uploaded[0]);
  };
  EXPECT_EQ(ahead(true), 0U);
  EXPECT_EQ(ahead(false), 0U) << "there was no room";
  EXPECT_EQ(ahead(false), slice_bytes);
}

const auto all_forms = testing::Values(form{1, test::caller::first, false}, form{1, test::caller::none, true},
                                       form{2, test::caller::none, false}, form{3, test::caller::last, true});
INSTANTIATE_TEST_SUITE_P(Worlds, Ahead, all_forms, name_of);
INSTANTIATE_TEST_SUITE_P(Worlds, AheadKills, all_forms, name_of);

}  // namespace
}  // namespace muster::cuda_ahead_test
