// SPDX-License-Identifier: BSL-1.0
// A store in one process: versions, keys, types, waiting.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/params.hpp>

namespace muster::store_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(const auto& call) {
  try {
    call();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

/// A value that is too long to lie beside its key.
struct page {
  std::vector<int> lines;
  std::string title;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(lines, title);
  }
};

page page_of(int number) { return {.lines = std::vector<int>(1000, number), .title = std::to_string(number)}; }

TEST(Store, AVersionIsOneMoreThanTheOneBefore) {
  const store s{store_ticket(store_options())};
  EXPECT_EQ(s.version("w"), 0U);
  for (int each = 1; each < 5; ++each) {
    const auto [ok, version] = s.push("w", 10 * each);
    EXPECT_TRUE(ok);
    EXPECT_EQ(version, static_cast<std::uint64_t>(each));
    const auto [value, at] = s.pull<int>("w");
    EXPECT_EQ(value, 10 * each);
    EXPECT_EQ(at, version);
  }
}

TEST(Store, ShortAndLongValuesTakeTurns) {
  const store s{store_ticket(store_options())};
  for (int each = 1; each < 20; ++each) {
    if (each % 3 == 0) {
      s.push("w", std::to_string(each));
      EXPECT_EQ(s.pull<std::string>("w").value, std::to_string(each));
    } else {
      s.push("w", page_of(each));
      EXPECT_EQ(s.pull<page>("w").value.lines.back(), each);
    }
    EXPECT_EQ(s.version("w"), static_cast<std::uint64_t>(each));
  }
}

TEST(Store, TensorsArePulledWithoutACopy) {
  const store s{store_ticket(store_options())};
  auto mine = tensor::arange<float>(100'000);
  s.push("w", mine.reshape({100, 1000}));
  mine.fill(0);
  const auto first = s.pull<tensor>("w").value;
  const auto second = s.pull<tensor>("w").value;
  EXPECT_EQ(first.shape(), tensor_shape({100, 1000}));
  EXPECT_EQ(first.at<const float>(99, 999), 99'999) << "what was pushed is a copy";
  EXPECT_EQ(first.const_data(), second.const_data());
  s.push("w", tensor::ones<float>({2, 2}));
  EXPECT_EQ(first.at<const float>(99, 999), 99'999) << "a version does not change";
  EXPECT_THAT(s.pull<tensor>("w").value.to_vector<float>(), ElementsAre(1, 1, 1, 1));
}

TEST(Store, WhatIsPulledCannotBeWritten) {
  const store s{store_ticket(store_options())};
  s.push("long", tensor::arange<float>(100'000));
  s.push("short", tensor::arange<float>(3));
  for (const auto* const key : {"long", "short"}) {
    const auto w = s.pull<tensor>(key).value;
    EXPECT_TRUE(w.is_read_only()) << key;
    EXPECT_THROW(w.fill(0.0F), error) << key;
    EXPECT_THROW(w.slice(0, 1).copy_from(tensor::zeros<float>({1})), error) << key;
    EXPECT_THROW(static_cast<void>(w.span<float>()), error) << key;
    EXPECT_EQ(w.span<const float>()[2], 2) << key;
    auto changed = w.clone();
    changed.fill(7.0F);
    s.push(key, changed);
    EXPECT_EQ(w.at<const float>(2), 2) << key;
  }
  for (const auto& each : s.pull_all<tensor>({"long", "short"})) EXPECT_TRUE(each.value.is_read_only());
  s.update<tensor>("long", [](const tensor& now) {
    EXPECT_TRUE(now.is_read_only());
    return now;
  });
}

TEST(Store, ATensorThatIsGivenAwayIsNotCopied) {
  for (const std::size_t depth : {1U, 3U}) {
    const store s{store_ticket({.depth = depth})};
    for (const std::size_t count : {std::size_t{1000}, std::size_t{1} << 18U}) {
      auto made = s.empty_like(tensor::empty<float>({count}));
      made.fill(static_cast<float>(count));
      const auto* const place = made.const_data();
      EXPECT_TRUE(s.push(count, std::move(made)));
      EXPECT_EQ(made.size(), 0U);  // NOLINT(bugprone-use-after-move): it is tensor()
      const auto found = s.pull<tensor>(count);
      EXPECT_EQ(found.value.const_data(), place);
      EXPECT_TRUE(found.value.is_read_only());
      EXPECT_EQ(found.value.at<const float>(count - 1), static_cast<float>(count));
    }
    auto ordinary = tensor::ones<float>({3, 100});
    const auto* const place = ordinary.const_data();
    EXPECT_TRUE(s.push("ordinary", std::move(ordinary)));
    EXPECT_EQ(s.pull<tensor>("ordinary").value.const_data(), place);
    EXPECT_EQ(s.pull<tensor>("ordinary").value.shape(), tensor_shape({3, 100}));
    EXPECT_EQ(s.update<tensor>("ordinary", [&](const tensor& now) { return s.empty_like(now); }), 2U);
  }
}

TEST(Store, ATensorThatOthersHaveIsCopiedThoughItIsGivenAway) {
  const store s{store_ticket(store_options())};
  const auto expect_copied = [&](tensor value, const char* why) {
    const auto* const place = value.const_data();
    const auto before = value.to_vector<float>();
    EXPECT_TRUE(s.push("w", std::move(value))) << why;
    const auto found = s.pull<tensor>("w").value;
    EXPECT_NE(found.const_data(), place) << why;
    EXPECT_EQ(found.to_vector<float>(), before) << why;
  };
  const auto kept = tensor::ones<float>({1000});
  expect_copied(tensor(kept), "another handle");
  kept.fill(7.0F);
  EXPECT_EQ(s.pull<tensor>("w").value.at<const float>(0), 1);
  expect_copied(tensor::ones<float>({1000}).slice(1, 1000), "not from its beginning on");
  expect_copied(tensor::ones<float>({100, 100}).transpose(), "not in a row");
  expect_copied(tensor::ones<float>({1000}, memory::local), "not shared");
  expect_copied(tensor::ones<float>({1U << 14U}), "no room for more");
  expect_copied(tensor::ones<float>({1000}).as_read_only(), "read-only");
  expect_copied(tensor(s.pull<tensor>("w").value), "a version of the store");
  auto bytes = tensor::full<std::uint8_t>({1000}, 2);
  s.push("b", tensor::over(std::exchange(bytes, tensor()).storage(), dtype::boolean, {1000}));
  EXPECT_EQ(tensor::over(s.pull<tensor>("b").value.storage(), dtype::u8, {1000}).at<const std::uint8_t>(999), 1)
      << "bools are 0 or 1";
}

TEST(Store, ATensorThatIsRefusedStaysTheCallers) {
  const store s{store_ticket(store_options())};
  s.push("w", 1);
  auto value = tensor::ones<float>({1000});
  EXPECT_FALSE(s.push("w", std::move(value), {.expected = 7}));
  EXPECT_EQ(value.size(), 1000U);  // NOLINT(bugprone-use-after-move): it was refused
  EXPECT_EQ(value.at<float>(999), 1);
  value.fill(2.0F);
  EXPECT_TRUE(s.push("w", std::move(value), {.expected = 1}));
  EXPECT_EQ(s.pull<tensor>("w").value.at<const float>(999), 2);
}

TEST(Store, TensorsOfAllFormsArePushed) {
  const store s{store_ticket(store_options())};
  s.push("none", tensor::zeros<double>({0, 3}));
  EXPECT_EQ(s.pull<tensor>("none").value.shape(), tensor_shape({0, 3}));
  s.push("scalar", tensor::full<std::int64_t>({}, 7));
  EXPECT_EQ(s.pull<tensor>("scalar").value.item<const std::int64_t>(), 7);
  const auto whole = tensor::arange<int>(0, 10'000).reshape({100, 100});
  s.push("strided", whole.transpose().slice(0, 50));
  EXPECT_EQ(s.pull<tensor>("strided").value.at<const int>(1, 2), whole.at<const int>(2, 1));
  EXPECT_TRUE(s.pull<tensor>("strided").value.is_contiguous());
}

TEST(Store, ACompareAndSwapIsRefusedWithTheNewestVersion) {
  const store s{store_ticket(store_options())};
  EXPECT_FALSE(s.push("w", 1, {.expected = 1}));
  EXPECT_TRUE(s.push("w", 1, {.expected = 0}));
  const auto refused = s.push("w", 2, {.expected = 0});
  EXPECT_FALSE(refused.ok);
  EXPECT_EQ(refused.version, 1U);
  EXPECT_EQ(s.pull<int>("w").value, 1);
  EXPECT_TRUE(s.push("w", page_of(3), {.expected = 1}));
  EXPECT_FALSE(s.push("w", page_of(4), {.expected = 1}));
  EXPECT_EQ(s.pull<page>("w").value.title, "3");
}

TEST(Store, OnlyTheNewestIsKeptAtDepthOne) {
  const store s{store_ticket({.depth = 1})};
  s.push("w", page_of(1));
  s.push("w", page_of(2));
  EXPECT_EQ(s.try_pull<page>("w", 2)->value.title, "2");
  EXPECT_FALSE(s.try_pull<page>("w", 1));
  EXPECT_FALSE(s.try_pull<page>("w", 3));
  s.push("v", 1);
  s.push("v", 2);
  EXPECT_EQ(s.try_pull<int>("v", 2)->value, 2);
  EXPECT_FALSE(s.try_pull<int>("v", 1));
}

TEST(Store, SoManyVersionsAreKeptAsTheDepthSays) {
  for (const std::size_t depth : {2U, 3U, 7U}) {
    const store s{store_ticket({.depth = depth})};
    for (int each = 1; each <= 20; ++each) {
      s.push("w", each % 2 == 0 ? std::string(1000, 'x') + std::to_string(each) : std::to_string(each));
      for (int version = 1; version <= each; ++version) {
        const auto found = s.try_pull<std::string>("w", static_cast<std::uint64_t>(version));
        const bool is_kept = version > each - static_cast<int>(depth);
        ASSERT_EQ(found.has_value(), is_kept) << version << " of " << each;
        if (found) {
          EXPECT_THAT(found->value, testing::EndsWith(std::to_string(version)));
        }
      }
    }
  }
}

TEST(Store, PullsOnlyWhatIsNewer) {
  const store s{store_ticket(store_options())};
  EXPECT_FALSE(s.pull_if_newer<int>("w", 0));
  s.push("w", 5);
  EXPECT_EQ(s.pull_if_newer<int>("w", 0)->value, 5);
  EXPECT_FALSE(s.pull_if_newer<int>("w", 1));
  s.push("w", 6);
  EXPECT_EQ(s.pull_if_newer<int>("w", 1)->version, 2U);
}

TEST(Store, KeysAreTextsOrNumbers) {
  const store s{store_ticket(store_options())};
  s.push(3, std::string("number"));
  s.push("3", std::string("text"));
  s.push(-1, std::string("negative"));
  s.push((std::int64_t{1} << 32) + 3, std::string("large"));
  s.push("", std::string("empty"));
  EXPECT_EQ(s.pull<std::string>(3).value, "number");
  EXPECT_EQ(s.pull<std::string>("3").value, "text");
  EXPECT_EQ(s.pull<std::string>((std::int64_t{1} << 32) + 3).value, "large");
  EXPECT_THAT(s.keys(), ElementsAre(store_key(-1), store_key(3), store_key((std::int64_t{1} << 32) + 3), store_key(""),
                                    store_key("3")));
  EXPECT_THAT(text_of([] { static_cast<void>(store_key(std::numeric_limits<std::uint64_t>::max())); }),
              HasSubstr("too large"));
  EXPECT_THAT(text_of([&] { s.push(std::string(177, 'k'), 1); }), HasSubstr("177 bytes"));
  s.push(std::string(176, 'k'), 1);
  EXPECT_EQ(s.pull<int>(std::string(176, 'k')).value, 1);
}

TEST(Store, VersionsGoOnAfterErase) {
  for (const std::size_t depth : {1U, 2U}) {
    const store s{store_ticket({.depth = depth})};
    EXPECT_FALSE(s.erase("w"));
    s.push("w", page_of(1));
    s.push("w", 2);
    EXPECT_TRUE(s.erase("w"));
    EXPECT_FALSE(s.erase("w"));
    EXPECT_FALSE(s.contains("w"));
    EXPECT_TRUE(s.keys().empty());
    EXPECT_FALSE(s.try_pull<int>("w"));
    EXPECT_FALSE(s.try_pull<int>("w", 2)) << "older ones go too";
    EXPECT_FALSE(s.push("w", 3, {.expected = 2}));
    EXPECT_EQ(s.push("w", 3, {.expected = 0}).version, 4U);
    EXPECT_THAT(s.keys(), ElementsAre(store_key("w")));
  }
}

TEST(Store, ManyKeysHaveOneValueEach) {
  const store s{store_ticket({.most_keys = 3000})};
  for (int each = 0; each < 3000; ++each) s.push(each, each * each);
  for (int each = 0; each < 3000; ++each) ASSERT_EQ(s.pull<int>(each).value, each * each);
  EXPECT_EQ(s.keys().size(), 3000U);
  EXPECT_THAT(text_of([&] { s.push("one more", 1); }), HasSubstr("has 3000 already"));
  EXPECT_EQ(s.push(7, 1).version, 2U);
}

TEST(Store, WhatIsMissingOrOfAnotherTypeIsSaid) {
  const store s{store_ticket(store_options())};
  EXPECT_THAT(text_of([&] { static_cast<void>(s.pull<int>("w")); }), HasSubstr("no value 'w'"));
  EXPECT_FALSE(s.try_pull<int>("w"));
  s.push("w", 1);
  EXPECT_THAT(text_of([&] { static_cast<void>(s.pull<double>("w")); }), HasSubstr("another type than double"));
  EXPECT_THAT(text_of([&] { static_cast<void>(s.pull<tensor>("w")); }), HasSubstr("another type"));
  EXPECT_THAT(text_of([] { const store none{store_ticket()}; }), HasSubstr("empty store_ticket"));
  EXPECT_THAT(text_of([] { store_ticket({.depth = 0}); }), HasSubstr("store_options::depth is 0"));
  EXPECT_THAT(text_of([] { store_ticket({.most_keys = 1U << 21U}); }), HasSubstr("store_options::most_keys"));
}

TEST(Store, AnUpdateIsMadeUntilNoOtherCameBetween) {
  const store s{store_ticket(store_options())};
  s.push("short", 0);
  s.push("long", page_of(0));
  std::vector<std::jthread> threads;
  for (int each = 0; each < 4; ++each) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        s.update<int>("short", [](int now) { return now + 1; });
        s.update<page>("long", [](page now) {
          for (auto& line : now.lines) ++line;
          return now;
        });
      }
    });
  }
  threads.clear();
  EXPECT_EQ(s.pull<int>("short").value, 800);
  const auto all = s.pull<page>("long");
  EXPECT_THAT(all.value.lines, testing::Each(800));
  EXPECT_EQ(all.version, 801U);
  EXPECT_THAT(text_of([&] { s.update<int>("none", [](int now) { return now; }); }), HasSubstr("no value 'none'"));
  EXPECT_THROW(s.update<int>("short", [](int) -> int { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(s.pull<int>("short").value, 800);
}

TEST(Store, AVersionIsWaitedFor) {
  const store s{store_ticket(store_options())};
  EXPECT_FALSE(s.wait_for("w", 1, 1ms));
  std::jthread later([&] {
    for (int each = 0; each < 3; ++each) s.push("w", each);
  });
  EXPECT_TRUE(s.wait_for("w", 3));
  EXPECT_EQ(s.pull<int>("w").value, 2);
}

TEST(Store, SeveralKeysArePulledAsTheyWereAtOneMoment) {
  const store s{store_ticket(store_options())};
  s.push("a", 0);
  s.push("b", 0);
  std::atomic<bool> is_over = false;
  std::jthread pusher([&] {
    for (int each = 1; !is_over; ++each) {  // a is never behind b, nor more than one ahead
      s.push("a", each);
      s.push("b", each);
    }
  });
  for (int each = 0; each < 2000; ++each) {
    const auto both = s.pull_all<int>({"a", "b"});
    const auto ahead = both[0].value - both[1].value;
    ASSERT_TRUE(ahead == 0 || ahead == 1) << both[0].value << " and " << both[1].value;
  }
  is_over = true;
  EXPECT_THAT(text_of([&] { static_cast<void>(s.pull_all<int>({"a", "c"})); }), HasSubstr("no value 'c'"));
}

TEST(Store, SeveralValuesArePushedTogether) {
  for (const std::size_t depth : {1U, 3U}) {
    const store s{store_ticket({.depth = depth})};
    s.push("b", 0);
    const auto made = s.push_all({{"a", 1}, {"b", std::string("two")}, {3, tensor::ones<float>({100, 100}), 0}});
    EXPECT_TRUE(made.ok);
    EXPECT_THAT(made.versions, ElementsAre(1, 2, 1));
    EXPECT_EQ(s.pull<int>("a").value, 1);
    EXPECT_EQ(s.pull<std::string>("b").value, "two");
    EXPECT_EQ(s.pull<tensor>(3).value.at<const float>(99, 99), 1);
    const auto refused = s.push_all({{"a", 5}, {"b", 5, 1}, {3, 5}});
    EXPECT_FALSE(refused.ok);
    EXPECT_THAT(refused.versions, ElementsAre(1, 2, 1));
    EXPECT_EQ(s.pull<int>("a").value, 1);
    EXPECT_TRUE(s.push_all({{"b", 6, 2}, {"a", 5, 1}}));
    EXPECT_EQ(s.pull<int>("b").value, 6);
    EXPECT_TRUE(s.push_all({}));
    EXPECT_THAT(text_of([&] { s.push_all({{"a", 1}, {"a", 2}}); }), HasSubstr("'a' was given twice"));
    EXPECT_EQ(s.push("a", 7).version, 3U);
  }
}

TEST(Store, APartOfThemIsNeverSeen) {
  for (const std::size_t depth : {1U, 2U}) {
    const store s{store_ticket({.depth = depth})};
    const auto push_both = [&](int number) { s.push_all({{"a", number}, {"b", page_of(number)}}); };
    push_both(0);
    std::atomic<bool> is_over = false;
    std::vector<std::jthread> pushers;
    for (int pusher = 0; pusher < 2; ++pusher) {
      pushers.emplace_back([&, pusher] {
        for (int each = 1; !is_over; ++each) push_both(2 * each + pusher);
      });
    }
    pushers.emplace_back([&] {  // another, which has to do with one of them
      while (!is_over) s.update<int>("a", [](int now) { return now; });
    });
    for (int each = 0; each < 2000; ++each) {
      const auto [a, a_version] = s.pull<int>("a");
      ASSERT_GE(s.version("a"), a_version);
      const auto before = s.version("b");
      const auto page = s.pull<struct page>("b");
      ASSERT_GE(page.version, before);
      ASSERT_EQ(page.value.title, std::to_string(page.value.lines.back()));
    }
    is_over = true;
    pushers.clear();
    EXPECT_EQ(s.pull<int>("a").value, s.pull<struct page>("b").value.lines.front());
  }
}

using short_value = std::array<std::uint64_t, 32>;  // as long as may lie beside a key

TEST(Store, ShortValuesAreNeverTorn) {
  const store s{store_ticket(store_options())};
  const auto value_of = [](std::uint64_t number) {
    short_value made{};
    made.fill(number);
    return made;
  };
  s.push("w", value_of(0));
  std::atomic<bool> is_over = false;
  std::vector<std::jthread> pushers;
  for (std::uint64_t pusher = 0; pusher < 3; ++pusher) {
    pushers.emplace_back([&, pusher] {
      for (std::uint64_t each = pusher; !is_over; each += 3) s.push("w", value_of(each));
    });
  }
  for (int each = 0; each < 20'000; ++each) {
    const auto found = s.pull<short_value>("w").value;
    ASSERT_THAT(found, testing::Each(found[0]));
  }
  is_over = true;
}

TEST(Store, OlderVersionsAreOfTheirOwnKey) {
  const store s{store_ticket({.depth = 3})};
  std::atomic<bool> is_over = false;
  std::vector<std::jthread> pushers;
  for (const int key : {0, 1, 2}) {
    s.push(key, std::pair(key, std::uint64_t{1}));
    pushers.emplace_back([&, key] {
      for (std::uint64_t version = 2; !is_over; ++version) s.push(key, std::pair(key, version));
    });
  }
  for (int each = 0; each < 3000; ++each) {
    const int key = each % 3;
    const auto newest = s.version(key);
    for (auto version = newest; version != 0 && version + 3 > newest; --version) {
      const auto found = s.try_pull<std::pair<int, std::uint64_t>>(key, version);
      if (!found) continue;
      ASSERT_EQ(found->value, std::pair(key, version));
    }
  }
  is_over = true;
}

TEST(Store, AddingTheSameKeysAtOnceLosesNoPlace) {
  const store_ticket ticket({.most_keys = 300});
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int each = 0; each < 300; ++each) store(ticket).push(each, each);  // each time as if anew
      });
    }
  }
  EXPECT_EQ(store(ticket).keys().size(), 300U);
  EXPECT_THAT(text_of([&] { store(ticket).push(300, 1); }), HasSubstr("has 300 already"));
}

TEST(Store, NothingIsLeftOfIt) {
  const auto stays = domain::of_program();
  const auto in_use = [&] {
    stays->keepsakes().tidy();
    const auto found = stays->blocks().read_statistics();
    return std::pair(found.live_blocks, found.holds);
  };
  const auto before = in_use();
  for (const std::size_t depth : {1U, 3U}) {
    const store s{store_ticket({.depth = depth})};
    for (int each = 0; each < 10; ++each) {
      for (const auto* key : {"a", "b", "c"}) s.push(key, page_of(each));
      s.push("d", each);
      s.push("d", page_of(each));
      static_cast<void>(s.pull<page>("a"));
      s.push_all({{"a", page_of(each)}, {"d", each}, {"e", each}});
    }
    s.erase("b");
  }
  EXPECT_EQ(in_use(), before);
}

TEST(Store, APullKeepsWhatItFoundAndNoMore) {
  const auto stays = domain::of_program();
  const store s{store_ticket(store_options())};
  s.push("w", page_of(1));
  const auto before = stays->blocks().read_statistics().live_blocks;
  for (int each = 0; each < 100; ++each) s.push("w", page_of(each));
  EXPECT_EQ(stays->blocks().read_statistics().live_blocks, before);
}

}  // namespace
}  // namespace muster::store_test
