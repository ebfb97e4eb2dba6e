// SPDX-License-Identifier: BSL-1.0
// Key-value stores in files: what goes on from one is, bit for bit, what goes on undisturbed.
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include <muster/device/safetensors.hpp>

#include "kv_support.hpp"
#include "temporary_directory.hpp"

namespace muster::kv_store_test {
namespace {

using testing::HasSubstr;

class KvFiles : public testing::Test {
protected:
  test::temporary_directory where_;
  std::string path_ = where_.path() / "kv.safetensors";
};

const adam adam_rule{.rate = 0.1};

tensor gradient_at(std::size_t step, std::size_t rank) {
  auto made = tensor::arange<float>(6).reshape({2, 3});
  scale(made, 0.1 * static_cast<double>(step + 1) / static_cast<double>(rank + 1));
  return made;
}

void begin(const kv_store& kv) {
  kv.init("w", ones(small));
  kv.init(7, ones(odd));
  kv.set_optimizer(adam_rule);
}

void step(const kv_store& kv, std::size_t which) {
  kv.push("w", gradient_at(which, kv.rank()));
  kv.push(7, ones(odd, 0.01F * static_cast<float>(which)));
}

TEST_F(KvFiles, WhatGoesOnFromAFileIsBitForBitWhatGoesOnUndisturbed) {
  const kv_store whole(kv_kind::local);
  begin(whole);
  for (std::size_t each = 0; each < 3; ++each) step(whole, each);
  whole.save(path_);
  for (std::size_t each = 3; each < 6; ++each) step(whole, each);
  const kv_store after(kv_kind::local);
  begin(after);
  step(after, 40);  // is undone
  after.load(path_);
  EXPECT_EQ(after.values().version("w"), 4U);
  for (std::size_t each = 3; each < 6; ++each) step(after, each);
  EXPECT_EQ(after.pull("w").to_vector<float>(), whole.pull("w").to_vector<float>());
  EXPECT_EQ(after.pull(7).to_vector<float>(), whole.pull(7).to_vector<float>());
}

TEST_F(KvFiles, StatesAreTensorsOfTheirOwn) {
  const kv_store kv(kv_kind::local);
  begin(kv);
  step(kv, 0);
  kv.values().push("epoch", 3);
  kv.save(path_);
  const auto read = read_safetensors(path_);
  for (const auto* const name : {"w", "w.state0", "w.state1", "7", "7.state0", "7.state1", "epoch"}) {
    EXPECT_TRUE(read.contains(name)) << name;
  }
  EXPECT_EQ(read.tensors.size(), 7U);
  const kv_store after(kv_kind::local);
  after.set_optimizer(adam_rule);
  after.load(path_);  // without init
  EXPECT_EQ(after.values().pull<int>("epoch").value, 3);
  step(kv, 1);
  step(after, 1);
  EXPECT_EQ(after.pull("w").to_vector<float>(), kv.pull("w").to_vector<float>());
}

TEST_F(KvFiles, WhatDoesNotFitIsSaidAndChangesNothing) {
  const kv_store kv(kv_kind::local);
  begin(kv);
  step(kv, 0);
  kv.save(path_);
  const kv_store other(kv_kind::local);
  other.init("w", ones(small));
  EXPECT_THAT(text_of([&] { other.load(path_); }),
              testing::AllOf(HasSubstr("2 states of the rule adam"), HasSubstr("the store's is none"),
                             HasSubstr("set_optimizer"), HasSubstr(path_)));
  other.set_optimizer(sgd{.rate = 1});
  EXPECT_THAT(text_of([&] { other.load(path_); }), HasSubstr("the store's is sgd"));
  EXPECT_EQ(other.values().version("w"), 1U);
  const kv_store shaped(kv_kind::local);
  shaped.init("w", ones({3, 2}));
  shaped.set_optimizer(adam_rule);
  EXPECT_THAT(text_of([&] { shaped.load(path_); }),
              testing::AllOf(HasSubstr("'w'"), HasSubstr("(3, 2)"), HasSubstr("(2, 3)")));
  EXPECT_FALSE(shaped.values().contains(7)) << "all or nothing";
}

TEST_F(KvFiles, KeysOfTheProgramsOwnAreSavedHoweverLongTheyAre) {
  const kv_store kv(kv_kind::local);
  begin(kv);
  const std::string longest(store_key::most_bytes, 'x');
  kv.values().push(longest, 5);
  kv.save(path_);
  const kv_store after(kv_kind::local);
  after.set_optimizer(adam_rule);
  after.load(path_);
  EXPECT_EQ(after.values().pull<int>(longest).value, 5);
}

TEST_F(KvFiles, ATensorThatWorkersPushToIsNotReplacedByAnotherType) {
  const store all{store_ticket(store_options())};
  all.push("w", 5);
  all.save(path_);
  const kv_store kv(kv_kind::local);
  begin(kv);
  EXPECT_THAT(text_of([&] { kv.load(path_); }), HasSubstr("another type"));
  step(kv, 0);
}

// A file is loaded as a whole by the rule that is set, or refused as that is another one; keys come meanwhile.
TEST_F(KvFiles, ALoadBesideInitAndSetOptimizerIsWholeOrRefused) {
  const kv_store whole(kv_kind::local);
  begin(whole);
  for (std::size_t each = 0; each < 3; ++each) step(whole, each);
  whole.save(path_);
  for (std::size_t each = 3; each < 6; ++each) step(whole, each);
  const kv_store kv(kv_kind::local);
  begin(kv);
  std::atomic<bool> ends = false;
  std::thread others([&] {
    for (int each = 100; !ends; ++each) {
      if (each < 1000) kv.init(each, ones(small));
      kv.set_optimizer(sgd{.rate = 0.5, .momentum = 0.5});
      kv.set_optimizer(adam_rule);
    }
  });
  std::size_t loaded = 0;
  for (std::size_t each = 0; loaded < 20 && each < 2000; ++each) {
    const auto said = text_of([&] { kv.load(path_); });
    if (said == "nothing was thrown") {
      ++loaded;
    } else {
      EXPECT_THAT(said, HasSubstr("call set_optimizer with that rule first"));
    }
    EXPECT_EQ(kv.pull("w").shape(), small);
  }
  ends = true;
  others.join();
  EXPECT_GT(kv.values().keys().size(), 2U);
  kv.load(path_);
  for (std::size_t each = 3; each < 6; ++each) step(kv, each);
  EXPECT_EQ(kv.pull("w").to_vector<float>(), whole.pull("w").to_vector<float>());
}

TEST_F(KvFiles, StatesWithoutARuleAreRefused) {
  write_safetensors(
      path_, {.tensors = {{"w", ones(small)}, {"s", ones(small)}},
              .metadata = {{"muster", "store 1"}, {"value w", "version=1"}, {"value s", "version=1 text=77 state=0"}}});
  const kv_store kv(kv_kind::local);
  begin(kv);
  EXPECT_THAT(text_of([&] { kv.load(path_); }), HasSubstr("states of no rule"));
}

// Another rule begins with new states, and the old ones are worth nothing.
TEST_F(KvFiles, StatesOfARuleThatHasBeenReplacedAreNotSaved) {
  const kv_store kv(kv_kind::local);
  kv.init("w", ones(small));
  kv.set_optimizer(adam_rule);
  kv.push("w", ones(small));
  kv.set_optimizer(sgd{.rate = 0.2, .momentum = 0.9});
  kv.save(path_);
  EXPECT_FALSE(read_safetensors(path_).contains("w.state0"));
  const kv_store after(kv_kind::local);
  after.load(path_);
  EXPECT_EQ(after.pull("w").to_vector<float>(), kv.pull("w").to_vector<float>());
}

// ---- several processes

constexpr std::size_t learners = 3;
constexpr std::size_t all_steps = 6;

// From the step on that the store says, to the one that it says.
void learn(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  begin(kv);
  const auto first = kv.values().pull<std::size_t>("first").value;
  const auto last = kv.values().pull<std::size_t>("last").value;
  const auto path = kv.values().pull<std::string>("path").value;
  kv.barrier();
  if (first != 0 && rank == 1) kv.load(path);
  kv.barrier();
  for (auto each = first; each < last; ++each) step(kv, each);
  if (last != all_steps && rank == 2) kv.save(path);
  kv.barrier();
}

std::vector<float> learned(std::size_t first, std::size_t last, const std::string& path) {
  const kv_ticket ticket(kv_kind::sync, {.workers = learners});
  const store values(ticket.values());
  values.push("first", first);
  values.push("last", last);
  values.push("path", path);
  join_all(start(ticket, learners, learn));
  auto all = values.pull<tensor>("w").value.to_vector<float>();
  const auto more = values.pull<tensor>(7).value.to_vector<float>();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_F(KvFiles, WhatOwnersInSeveralProcessesHaveIsSavedByOneAndLoadedByAnother) {
  const auto undisturbed = learned(0, all_steps, path_);
  const auto before = learned(0, 2, path_);
  EXPECT_NE(before, undisturbed);
  // Each process has its own first and last, which the file would replace.
  EXPECT_EQ(learned(2, all_steps, path_), undisturbed);
}

}  // namespace
}  // namespace muster::kv_store_test
