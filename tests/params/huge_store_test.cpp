// SPDX-License-Identifier: BSL-1.0
// Values beyond 4 GiB, whose places and sizes need more than 32 bits.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <muster/base/memory_budget.hpp>
#include <muster/base/text.hpp>
#include <muster/params.hpp>
#include <muster/pool/process.hpp>

#include "temporary_directory.hpp"

namespace muster::huge_store_test {
namespace {

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;
constexpr std::size_t floats = gibibyte + 1000;  // 4 GiB, and something

bool has_room(std::uint64_t gibibytes) { return available_memory().available_bytes > gibibytes * gibibyte; }

// Where 32 bits end, in bytes and in elements, and both ends.
constexpr std::size_t places[] = {0, gibibyte - 1, gibibyte, gibibyte + 1, floats - 1};

void mark(const tensor& which, float by) {
  for (const auto place : places) which.at<float>(place) = by + static_cast<float>(place % 97);
}

void require_marks(const tensor& found, float by, const std::string& where) {
  if (found.size() != floats) throw std::runtime_error(text(where, ": ", found.size(), " elements"));
  for (const auto place : places) {
    const auto each = found.at<const float>(place);
    if (each != by + static_cast<float>(place % 97)) throw std::runtime_error(text(where, ": ", each, " at ", place));
  }
  if (found.at<const float>(12345) != 0) throw std::runtime_error(text(where, ": another element was written"));
}

void look(const store_ticket& ticket, float by) {
  require_marks(store(ticket).pull<tensor>("w").value, by, "another process");
}

void expect_well(const process& which) {
  which.join();
  EXPECT_NO_THROW(which.watch());
}

TEST(HugeStore, AValueBeyondFourGibibytesIsPulledWholeAndKeptInAFile) {
  if (!has_room(14)) GTEST_SKIP() << "too little memory: the value, the one before, and the file's pages";
  const store_ticket ticket{store_options()};
  const store s(ticket);
  {
    auto given = s.empty_like(tensor::empty<float>({floats}));
    given.fill(0.0F);
    mark(given, 1);
    const auto* const place = given.const_data();
    EXPECT_TRUE(s.push("w", std::move(given)));
    EXPECT_EQ(s.pull<tensor>("w").value.const_data(), place) << "it was copied";
  }
  expect_well(process(look, ticket, 1.0F));
  const test::temporary_directory where;
  const std::string path = where.path() / "w.safetensors";
  s.save(path);
  s.erase("w");
  s.load(path);
  EXPECT_NO_THROW(require_marks(s.pull<tensor>("w").value, 1, "the file"));
  expect_well(process(look, ticket, 1.0F));
}

TEST(HugeStore, RoundsOfGradientsBeyondFourGibibytesAreApplied) {
  if (!has_room(18)) GTEST_SKIP() << "too little memory: the gradient, the value, and the next one";
  const kv_ticket ticket(kv_kind::sync, {.workers = 1});
  const kv_store kv(ticket, 0);
  const auto gradient = tensor::zeros<float>({floats});
  kv.init("w", gradient);
  kv.set_optimizer(sgd{.rate = 1});
  mark(gradient, 2);
  kv.push("w", gradient);
  const auto found = kv.pull("w");
  for (const auto place : places) EXPECT_EQ(found.at<const float>(place), -gradient.at<float>(place)) << place;
  EXPECT_EQ(found.at<const float>(12345), 0);
}

}  // namespace
}  // namespace muster::huge_store_test
