// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/reduction.hpp>

#include <set>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "../device/device_support.hpp"

namespace muster::reduction_test {
namespace {

using test::expect_refused;

float keep_first(float first, float) { return first; }

reduction keep_first_named(std::string name) { return reduction::custom<float>(std::move(name), keep_first); }

TEST(Reduction, IsMadeOfAnOpAndHasItsName) {
  const reduction made = reduction_op::bxor;
  EXPECT_EQ(made.op(), reduction_op::bxor);
  EXPECT_EQ(made.name(), "bxor");
  EXPECT_EQ(made.function(), nullptr);
}

TEST(Reduction, OfAFunctionHasTheNameThatTheFunctionWasGiven) {
  const auto made = keep_first_named("keep first");
  EXPECT_EQ(made.op(), reduction_op::custom);
  EXPECT_EQ(made.name(), "keep first");
  ASSERT_NE(made.function(), nullptr);
  EXPECT_EQ(made.function()->type(), dtype::f32);
}

TEST(Reduction, IsNotMadeOfCustomNorOfANumberThatIsNoOp) {
  expect_refused([] { reduction{reduction_op::custom}; }, "reduction_op 8 (custom)", "a function to reduction::custom");
  expect_refused([] { reduction{static_cast<reduction_op>(77)}; }, "reduction_op 77 (unknown)", "one of sum to bxor");
}

TEST(Reduction, OfAFunctionIsNotMadeWithoutAName) {
  expect_refused([] { static_cast<void>(keep_first_named("")); }, "no name");
}

TEST(Reduction, HasTheFingerprintOfItsLikeOnly) {
  std::vector<reduction> different = {keep_first_named("one"), keep_first_named("other"),
                                      reduction::custom<double>("one", std::plus<>())};
  for (unsigned op = 0; op < 8; ++op) different.emplace_back(static_cast<reduction_op>(op));
  std::set<std::uint64_t> found;
  for (const auto& each : different) found.insert(each.fingerprint());
  EXPECT_EQ(found.size(), different.size());
  EXPECT_EQ(keep_first_named("one").fingerprint(), keep_first_named("one").fingerprint());
}

// Ranks may be different builds: these must not change.
TEST(Reduction, HasAFingerprintThatStaysAsItIs) {
  EXPECT_EQ(reduction(reduction_op::max).fingerprint(), 4U);
  EXPECT_EQ(keep_first_named("one").fingerprint(), 0x8715'acb4'6adb'6aacU);
}

void expect_possible(reduction_op op, const std::set<dtype>& refused) {
  for (std::size_t number = 0; number < dtype_count; ++number) {
    const auto type = static_cast<dtype>(number);
    const bool is_refused = refused.contains(type);
    SCOPED_TRACE(testing::Message() << op << " of " << type);
    if (is_refused) {
      expect_refused([&] { reduction(op).require(type); });
    } else {
      EXPECT_NO_THROW(reduction(op).require(type));
    }
  }
}

TEST(Reduction, IsForWhatItHasAMeaningFor) {
  using enum dtype;
  const std::set<dtype> complex = {c64, c128};
  const std::set<dtype> not_integer = {f16, bf16, f32, f64, c64, c128};
  for (const auto op : {reduction_op::sum, reduction_op::prod}) expect_possible(op, {});
  for (const auto op : {reduction_op::min, reduction_op::max}) expect_possible(op, complex);
  for (const auto op : {reduction_op::band, reduction_op::bor, reduction_op::bxor}) expect_possible(op, not_integer);
  expect_possible(reduction_op::avg, {boolean});
}

TEST(Reduction, SaysWhatIsPossibleInsteadOfWhatIsNot) {
  const auto require = [](reduction_op op, dtype type) { return [op, type] { reduction(op).require(type); }; };
  expect_refused(require(reduction_op::max, dtype::c64), "dtype c64 cannot be reduced by max",
                 "give sum, avg, prod, or");
  expect_refused(require(reduction_op::bor, dtype::f16), "dtype f16", "give sum, avg, prod, min, max, or");
  expect_refused(require(reduction_op::avg, dtype::boolean), "dtype bool",
                 "give sum, prod, min, max, band, bor, bxor, or", "how many are, convert() them");
}

TEST(Reduction, OfAFunctionIsForItsDtypeOnly) {
  const auto made = keep_first_named("keep first");
  EXPECT_NO_THROW(made.require(dtype::f32));
  expect_refused([&] { made.require(dtype::bf16); },
                 "dtype bf16 cannot be reduced by \"keep first\", a function of f32");
}

TEST(Reduction, RefusesADtypeThatIsNone) {
  expect_refused([] { reduction(reduction_op::sum).require(static_cast<dtype>(99)); }, "dtype unknown");
}

TEST(ReductionOp, PrintsItsNameWhateverNumberItIs) {
  std::ostringstream out;
  out << reduction_op::avg << ' ' << static_cast<reduction_op>(99);
  EXPECT_EQ(out.str(), "avg unknown");
}

}  // namespace
}  // namespace muster::reduction_test
