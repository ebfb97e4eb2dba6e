// SPDX-License-Identifier: BSL-1.0
// Stores in files.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/safetensors.hpp>
#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/params/detail/store_file_entry.hpp>
#include <muster/params/ordered_server.hpp>
#include <muster/params/store.hpp>

#include "temporary_directory.hpp"

namespace muster::store_file_test {
namespace {

using detail::store_file_entry;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(StoreFileEntry, ComesBackFromItsLine) {
  const std::vector<store_file_entry> all = {
      {.key = "w", .version = 1},
      {.key = 3, .version = 7},
      {.key = std::int64_t{-5}, .version = 7, .state = 1},
      {.key = "3", .version = 2, .type = 0xfedcba9876543210U},
      {.key = "with blanks = and ä\n", .version = store_file_entry::most_version, .rule = "adam", .step = 12},
      {.key = "", .version = 0},
      {.key = "w.state0", .version = 4, .state = 0},
  };
  for (const auto& each : all) {
    const auto name = each.name();
    EXPECT_TRUE(std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; })) << name;
    EXPECT_EQ(store_file_entry::parse(name, each.fields(name)), each) << name << ": " << each.fields(name);
    EXPECT_EQ(store_file_entry::parse(name + "'", each.fields(name + "'")), each) << "where another has the name";
  }
  EXPECT_EQ(all[0].fields("w"), "version=1");
  EXPECT_EQ(all[1].fields("3"), "version=7 number=3");
}

TEST(StoreFileEntry, WhatIsNotKnownIsPassedOverAndWhatCannotBeIsRefused) {
  EXPECT_EQ(store_file_entry::parse("w", "version=3 color=red"), (store_file_entry{.key = "w", .version = 3}));
  EXPECT_EQ(store_file_entry::parse("w", ""), store_file_entry{.key = "w"});
  for (const auto* const line : {"version", "version=", "version=x", "version=-1", "version=1x",
                                 "version=99999999999999999", "number=", "number=9999999999999999999", "text=6",
                                 "text=zz", "type=xyz", "step=a", "step=18446744073709551615"}) {
    EXPECT_EQ(store_file_entry::parse("w", line), std::nullopt) << line;
  }
  EXPECT_EQ(store_file_entry::parse(std::string(store_key::most_bytes + 1, 'x'), "version=1"), std::nullopt);
}

class StoreFile : public testing::Test {
protected:
  [[nodiscard]] std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  test::temporary_directory where_;
  std::string path_ = where_.path() / "store.safetensors";
  const store store_{store_ticket(store_options())};
  const store other_{store_ticket(store_options())};
};

TEST_F(StoreFile, WhatIsSavedIsLoadedWithItsVersions) {
  store_.push("w", tensor::zeros<float>({2}));
  store_.push("w", tensor::arange<float>(100'000));
  store_.push("short", tensor::full<std::int64_t>({}, 7));
  store_.push("none", tensor::zeros<double>({0, 3}));
  store_.push(3, tensor::ones<float>({2}));
  store_.push("3", std::string("a text"));
  store_.push("numbers", std::vector<int>{1, 2, 3});
  store_.push("ä\n", 5);
  store_.push("gone", 5);
  store_.erase("gone");
  store_.save(path_);
  other_.load(path_);
  EXPECT_EQ(other_.keys(), store_.keys());
  for (const auto& key : store_.keys()) EXPECT_EQ(other_.version(key), store_.version(key)) << key;
  EXPECT_EQ(other_.pull<tensor>("w").value.at<const float>(99'999), 99'999);
  EXPECT_EQ(other_.pull<tensor>("short").value.item<const std::int64_t>(), 7);
  EXPECT_EQ(other_.pull<tensor>("none").value.shape(), tensor_shape({0, 3}));
  EXPECT_THAT(other_.pull<tensor>(3).value.to_vector<float>(), ElementsAre(1, 1));
  EXPECT_EQ(other_.pull<std::string>("3").value, "a text");
  EXPECT_THAT(other_.pull<std::vector<int>>("numbers").value, ElementsAre(1, 2, 3));
  EXPECT_EQ(other_.pull<int>("ä\n").value, 5);
  EXPECT_THROW(static_cast<void>(other_.pull<int>("3")), error) << "its type is known";
}

TEST_F(StoreFile, VersionsNeverGoBackAndWhatTheFileHasNotStays) {
  store_.push("a", 1);
  store_.push("b", 1);
  store_.push("b", 2);
  store_.push("b", 3);
  store_.save(path_);
  for (int each = 0; each < 5; ++each) other_.push("a", each);
  other_.push("stays", 9);
  other_.load(path_);
  EXPECT_EQ(other_.pull<int>("a").version, 6U);
  EXPECT_EQ(other_.pull<int>("a").value, 1);
  EXPECT_EQ(other_.pull<int>("b").version, 3U);
  EXPECT_EQ(other_.try_pull<int>("b", 2), std::nullopt);
  EXPECT_EQ(other_.pull<int>("stays").value, 9);
  EXPECT_EQ(other_.push("b", 4).version, 4U);
}

TEST_F(StoreFile, OlderVersionsAreFoundBehindOneThatWasLoaded) {
  store_.push("a", 1, {});
  for (int each = 2; each <= 10; ++each) store_.push("a", each);
  store_.save(path_);
  const store deep{store_ticket({.depth = 3})};
  deep.push("a", -1);
  deep.load(path_);
  deep.push("a", 11);
  EXPECT_EQ(deep.pull<int>("a").version, 11U);
  EXPECT_EQ(deep.try_pull<int>("a", 10)->value, 10);
  EXPECT_EQ(deep.try_pull<int>("a", 1)->value, -1);
  EXPECT_EQ(deep.try_pull<int>("a", 5), std::nullopt);
}

TEST_F(StoreFile, AFileOfAnotherLibraryIsLoaded) {
  write_safetensors(path_, {.tensors = {{"layer.0.weight", tensor::ones<float>({3})}}, .metadata = {{"format", "pt"}}});
  other_.load(path_);
  EXPECT_THAT(other_.pull<tensor>("layer.0.weight").value.to_vector<float>(), ElementsAre(1, 1, 1));
  EXPECT_EQ(other_.version("layer.0.weight"), 1U);
}

TEST_F(StoreFile, ATornOrForeignFileChangesNothing) {
  store_.push("w", tensor::arange<float>(10));
  store_.save(path_);
  const auto whole = content();
  other_.push("w", tensor::ones<float>({1}));
  const auto expect_refused = [&](const char* why) {
    try {
      other_.load(path_);
      ADD_FAILURE() << "it was loaded: " << why;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), make_error_code(errc::corrupted)) << failure.what();
      EXPECT_THAT(failure.what(), HasSubstr(why));
    }
    EXPECT_EQ(other_.version("w"), 1U);
  };
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{20}, whole.size() - 1}) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, length);
    expect_refused("no whole safetensors file");
  }
  const auto write = [&](const std::string& name, const std::string& line) {
    write_safetensors(path_, {.tensors = {{name, tensor::ones<float>({1})}},
                              .metadata = {{"muster", "store 1"}, {"value " + name, line}}});
  };
  write("w", "version=x");
  expect_refused("'version=x' is said of it");
  write("w", "version=1 text=0163");
  expect_refused("the library's own");
  write_safetensors(path_, {.tensors = {{"w", tensor::ones<float>({1})}}, .metadata = {{"muster", "store 1"}}});
  expect_refused("nothing is said of it");
}

TEST_F(StoreFile, TheMomentIsOneAlsoAmongPushes) {
  const tensor none = tensor::zeros<float>({1000});
  store_.push_all({{"a", none}, {"b", none}});
  std::atomic<bool> ends = false;
  std::thread pusher([&] {
    for (int each = 1; !ends; ++each) {
      const auto both = tensor::full<float>({1000}, static_cast<float>(each));
      store_.push_all({{"a", both}, {"b", both}, {text("new ", each % 50), each}});
      if (each % 3 == 0) store_.erase(text("new ", each % 50));
    }
  });
  for (int each = 0; each < 20; ++each) {
    store_.save(path_);
    const auto read = read_safetensors(path_);
    EXPECT_EQ(read.at("a").to_vector<float>(), read.at("b").to_vector<float>());
    const auto round = static_cast<int>(read.at("a").at<float>(0));
    if (round == 0 || round % 3 == 0) continue;
    const auto name = text("new ", round % 50);
    ASSERT_TRUE(read.contains(name)) << "a key that came with them";
    int found = 0;
    std::memcpy(&found, read.at(name).data(), sizeof found);
    EXPECT_EQ(found, round);
  }
  ends = true;
  pusher.join();
}

TEST_F(StoreFile, AnOrderedServerGoesOnFromIt) {
  const store_ticket from((store_options()));
  const store all(from);
  ordered_server before(from, "o", {.depth = 2});
  EXPECT_TRUE(before.push<int>("k", 1, 10, std::nullopt));
  EXPECT_TRUE(before.push<int>("k", 2, 5, 10));
  all.save(path_);
  const store_ticket to((store_options()));
  store(to).load(path_);
  ordered_server after(to, "o", {.depth = 2});
  EXPECT_EQ(after.pull<int>("k")->version, 5);
  EXPECT_EQ(after.pull<int>("k", 10)->value, 1);
  EXPECT_FALSE(after.push<int>("k", 3, 6, 10));
  EXPECT_TRUE(after.push<int>("k", 3, 6, 5));
}

TEST_F(StoreFile, ALoadThatFailsUsesUpNoKeys) {
  for (int each = 0; each < 5; ++each) store_.push(each, each);
  store_.save(path_);
  const store few{store_ticket({.most_keys = 3})};
  few.push(0, 7);
  EXPECT_THROW(few.load(path_), error);
  EXPECT_EQ(few.pull<int>(0).value, 7);
  EXPECT_TRUE(few.push("one", 1));
  EXPECT_TRUE(few.push("two", 2));
}

TEST_F(StoreFile, WhatIsSavedIsNotKept) {
  const auto blocks = [] { return domain::of_program()->blocks().read_statistics().live_blocks; };
  store_.push("w", tensor::ones<float>({100'000}));
  const auto before = blocks();
  store_.save(path_);
  store_.load(path_);
  store_.push("w", tensor::ones<float>({100'000}));
  EXPECT_LE(blocks(), before);
}

TEST_F(StoreFile, OfStatesAloneNothingIsLoaded) {
  write_safetensors(path_, {.tensors = {{"w.state0", tensor::ones<float>({1})}},
                            .metadata = {{"muster", "store 1"}, {"value w.state0", "version=1 text=77 state=0"}}});
  other_.load(path_);
  EXPECT_TRUE(other_.keys().empty());
}

TEST_F(StoreFile, AKeyThatIsThereTwiceIsRefused) {
  write_safetensors(
      path_,
      {.tensors = {{"3", tensor::ones<float>({1})}, {"3'", tensor::zeros<float>({1})}},
       .metadata = {{"muster", "store 1"}, {"value 3", "version=1 number=3"}, {"value 3'", "version=1 number=3"}}});
  try {
    other_.load(path_);
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), make_error_code(errc::corrupted));
    EXPECT_THAT(failure.what(), HasSubstr("there twice"));
  }
}

}  // namespace
}  // namespace muster::store_file_test
