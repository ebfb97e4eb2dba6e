// SPDX-License-Identifier: BSL-1.0
// Values that lie in shared memory go to workers and back without a copy, whatever dies in between.
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/this_pool.hpp>

#include "processes.hpp"

namespace muster::attachment_test {
namespace {

// What a tensor is to the pool: a value that sends its block along.
class shared_text {
public:
  shared_text() = default;
  explicit shared_text(std::string_view text)
      : domain_(domain::of_program()), block_(domain_->blocks().allocate_shared(bytes)) {
    write(text);
  }

  void write(std::string_view text) const {
    std::snprintf(chars(), bytes, "%.*s", static_cast<int>(text.size()), text.data());
  }
  [[nodiscard]] std::string read() const { return chars(); }
  [[nodiscard]] const std::byte* address() const { return block_.data(); }

  void save(output_archive& out) const {
    if (!out.attaches()) throw error(errc::not_serializable, "only by reference");
    out.attach(block_);
  }
  void load(input_archive& in) {
    domain_ = domain::of_program();
    block_ = in.take_attachment();
  }

private:
  static constexpr std::size_t bytes = 100'000;
  [[nodiscard]] char* chars() const { return reinterpret_cast<char*>(block_.data()); }

  std::shared_ptr<domain> domain_;
  shared_block block_;
};

// What a worker keeps from one task to the next.
std::optional<shared_text> kept;

class Attachment : public testing::Test {
protected:
  // What nobody has a handle of is free, or cached for the next.
  void expect_all_free() {
    EXPECT_TRUE(test::eventually([&] {
      const auto found = domain_->blocks().read_statistics();
      return found.holds == 0 && found.live_blocks == 0;
    }));
  }

  std::shared_ptr<domain> domain_ = domain::of_program();
};

TEST_F(Attachment, AnArgumentIsTheCallersOwnMemory) {
  pool workers({.workers = 1});
  const shared_text text("from the caller");
  EXPECT_EQ(workers.apply([](const shared_text& seen) { return seen.read(); }, text), "from the caller");
  workers.apply([](const shared_text& seen) { seen.write("from the worker"); }, text);
  EXPECT_EQ(text.read(), "from the worker");
}

TEST_F(Attachment, AResultOutlivesItsWorker) {
  pool workers({.workers = 1});
  auto made = workers.apply_async([] { return shared_text("made by a worker"); });
  made.wait();
  ::kill(workers.workers().front().pid, SIGKILL);
  const auto text = made.get();
  ASSERT_TRUE(test::eventually([&] { return workers.workers().front().incarnation == 2; }));
  EXPECT_EQ(text.read(), "made by a worker");
}

TEST_F(Attachment, AnArgumentCanBeTheResult) {
  pool workers({.workers = 1});
  const shared_text text("there and back");
  const auto back = workers.apply([](shared_text seen) { return seen; }, text);
  EXPECT_EQ(back.address(), text.address());
}

TEST_F(Attachment, WhatAWorkerKeepsOutlivesTheCall) {
  pool workers({.workers = 1});
  {
    const shared_text text("kept");
    workers.apply([](const shared_text& seen) { kept = seen; }, text);
  }
  const shared_text another("another, perhaps in the same place");
  EXPECT_EQ(workers.apply([] { return kept->read(); }), "kept");
  workers.apply([] { kept.reset(); });
}

TEST_F(Attachment, WhatIsKeptByATaskThatThrowsOutlivesItToo) {
  pool workers({.workers = 1});
  {
    const shared_text text("kept");
    EXPECT_THROW(workers.apply(
                     [](const shared_text& seen) {
                       kept = seen;
                       throw std::runtime_error("thrown");
                     },
                     text),
                 std::runtime_error);
  }
  const shared_text another("another, perhaps in the same place");
  EXPECT_EQ(workers.apply([] { return kept->read(); }), "kept");
}

TEST_F(Attachment, ContainersAndSeveralArgumentsWork) {
  pool workers({.workers = 2});
  std::map<std::string, std::vector<shared_text>> all;
  all["a"] = {shared_text("1"), shared_text("2")};
  all["b"] = {shared_text("3")};
  const auto joined = [](const std::map<std::string, std::vector<shared_text>>& given, const shared_text& last) {
    std::string text;
    for (const auto& [name, each] : given) {
      for (const auto& one : each) text += name + one.read();
    }
    return text + last.read();
  };
  EXPECT_EQ(workers.apply(joined, all, shared_text("!")), "a1a2b3!");
  const auto back = workers.apply([](std::map<std::string, std::vector<shared_text>> given) { return given; }, all);
  EXPECT_EQ(back.at("a")[1].address(), all.at("a")[1].address());
}

TEST_F(Attachment, ElementsOfMapsAndBoundValuesAreSeenInPlace) {
  pool workers({.workers = 2});
  std::vector<shared_text> texts;
  for (int index = 0; index < 50; ++index) texts.emplace_back(std::to_string(index));
  const shared_text bound("bound ");
  const auto join =
      bind_front([](const shared_text& first, const shared_text& each) { return first.read() + each.read(); }, bound);
  const auto found = workers.map(join, texts);
  ASSERT_EQ(found.size(), 50U);
  EXPECT_EQ(found[49], "bound 49");
  int index = 0;
  for (const auto& each : workers.imap([](const shared_text& seen) { return seen.read(); }, texts)) {
    EXPECT_EQ(each, std::to_string(index++));
  }
  EXPECT_EQ(index, 50);
}

TEST_F(Attachment, OneBlockIsUsedByTwoPools) {
  pool first({.workers = 1});
  pool second({.workers = 1});
  const shared_text text("of the program");
  const auto read = [](const shared_text& seen) { return seen.read(); };
  EXPECT_EQ(first.apply(read, text), second.apply(read, text));
}

TEST_F(Attachment, AResultOfOnePoolIsAnArgumentOfAnother) {
  pool first({.workers = 1});
  pool second({.workers = 1});
  const auto made = first.apply([] { return shared_text("handed on"); });
  EXPECT_EQ(second.apply([](const shared_text& seen) { return seen.read(); }, made), "handed on");
}

TEST_F(Attachment, ATaskThatIsRunAgainAfterADeathFindsItsArguments) {
  pool workers({.workers = 1});
  const shared_text text("0");
  const auto dies_once = [](const shared_text& seen) {
    if (seen.read() == "0") {
      seen.write("1");
      std::abort();
    }
    return seen.read();
  };
  EXPECT_EQ(workers.with({.retries = 1}).apply(dies_once, text), "1");
}

TEST_F(Attachment, OfAResultThatNobodyTakesNothingIsLeft) {
  pool workers({.workers = 1});
  for (int count = 0; count < 10; ++count)
    static_cast<void>(workers.apply_async([] { return shared_text("dropped"); }));
  workers.apply([] {});
  expect_all_free();
}

TEST_F(Attachment, WhenWorkersDieNothingIsLeft) {
  pool workers({.workers = 2});
  {
    const shared_text text("given");
    for (int round = 0; round < 10; ++round) {
      auto crash = workers.apply_async(
          [](const shared_text& seen) {
            kept = seen;
            const shared_text own("own");
            std::abort();
          },
          text);
      EXPECT_THROW(crash.get(), worker_died);
    }
  }
  expect_all_free();
}

TEST_F(Attachment, ACallOfAnotherDomainIsRefusedWithTheReason) {
  pool workers({.workers = 1, .arena_bytes = std::size_t{64} << 20U, .isolated = true});
  const shared_text text("of the program's domain");
  try {
    static_cast<void>(workers.apply([](const shared_text& seen) { return seen.read(); }, text));
    FAIL();
  } catch (const error& found) {
    EXPECT_EQ(found.code(), errc::invalid_argument);
    EXPECT_THAT(found.what(), testing::HasSubstr("another domain"));
  }
}

TEST_F(Attachment, ACallFromInsideATaskSeesThemToo) {
  pool workers({.workers = 2});
  const shared_text text("deep");
  const auto outer = [](const shared_text& seen) {
    return this_pool::apply([](const shared_text& inner) { return inner.read(); }, seen) +
           this_pool::apply([](const shared_text& inner) { return inner; }, seen).read();
  };
  EXPECT_EQ(workers.apply(outer, text), "deepdeep");
}

TEST_F(Attachment, AResultOfManyBlocksArrives) {
  pool workers({.workers = 1});
  const auto many = workers.apply([] {
    std::vector<shared_text> all;
    for (int index = 0; index < 300; ++index) all.emplace_back(std::to_string(index));
    return all;
  });
  EXPECT_EQ(many[299].read(), "299");
}

}  // namespace
}  // namespace muster::attachment_test
