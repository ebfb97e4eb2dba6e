// SPDX-License-Identifier: BSL-1.0
#pragma once

// What pools do with tensors, wherever their elements lie: on_host of places.hpp, on_gpu of gpu_fixture.hpp.
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::test {

inline double sum_of(const tensor& of) {
  double total = 0;
  for (const double each : of.to(device::cpu()).contiguous().span<double>()) total += each;
  return total;
}
inline void overwrite(const tensor& given) { given.fill(-1.0); }

/// A struct of a user's, as an argument and a result.
struct labelled {
  std::string name;
  tensor images;
  std::vector<tensor> labels;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, images, labels);
  }
};

/// What a worker keeps from one task to the next.
inline std::optional<tensor> kept_by_worker;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

template <class Place>
class TensorPoolConformance : public Place::fixture {
protected:
  void SetUp() override {
    Place::fixture::SetUp();
    if (!testing::Test::IsSkipped()) pool_.emplace(pool_options{.workers = 2});
  }
  void TearDown() override {
    pool_.reset();  // what workers have kept is free again after that
    Place::fixture::TearDown();
  }

  static tensor counted(double count) { return tensor::arange<double>(count).to(Place::where); }
  static tensor filled(std::size_t count, double value) { return tensor::full<double>({count}, value, Place::where); }
  // Of a device that is for the place's fixture to see.
  [[nodiscard]] static bool holds_nothing() {
    return !Place::where.is_cpu() || domain::of_program()->blocks().read_statistics().holds == 0;
  }

  std::optional<pool> pool_;
};
TYPED_TEST_SUITE_P(TensorPoolConformance);

TYPED_TEST_P(TensorPoolConformance, AnArgumentIsReadWhereItIs) {
  EXPECT_EQ(this->pool_->apply(sum_of, this->counted(1000)), 499'500);
  EXPECT_TRUE(
      this->pool_->apply([](const tensor& given) { return given.device() == TypeParam::where; }, this->counted(1000)));
}

TYPED_TEST_P(TensorPoolConformance, WhatAWorkerWritesTheCallerSees) {
  const auto numbers = tensor::zeros<float>({3, 4}, TypeParam::where);
  this->pool_->apply([](const tensor& given) { given.fill(7.0F); }, numbers);
  EXPECT_TRUE(equal(numbers, tensor::full<float>({3, 4}, 7.0F)));
}

TYPED_TEST_P(TensorPoolConformance, AViewGoesAsAView) {
  const auto numbers = this->counted(12).reshape({3, 4});
  EXPECT_EQ(this->pool_->apply(sum_of, numbers.row(1)), 4 + 5 + 6 + 7);
  EXPECT_EQ(this->pool_->apply(sum_of, numbers.slice(1, 3, 1)), 1 + 2 + 5 + 6 + 9 + 10);
  this->pool_->apply(overwrite, numbers.slice(0, 1, 1));
  const auto now = numbers.to(device::cpu());
  EXPECT_EQ(now.template at<double>(2, 0), -1);
  EXPECT_EQ(now.template at<double>(2, 1), 9);
}

TYPED_TEST_P(TensorPoolConformance, AResultOutlivesItsPool) {
  tensor made;
  {
    const pool own({.workers = 1});
    made = own.apply([](double count) { return tensor::arange<double>(count).to(TypeParam::where); }, 100'000.0);
    EXPECT_EQ(made.device(), TypeParam::where);
    EXPECT_EQ(own.apply(sum_of, made), 4'999'950'000);
  }
  EXPECT_EQ(sum_of(made.clone()), 4'999'950'000);
}

TYPED_TEST_P(TensorPoolConformance, TheSameOneComesBackAsItself) {
  const auto numbers = this->counted(10);
  const auto back = this->pool_->apply([](tensor given) { return given; }, numbers);
  overwrite(numbers);
  EXPECT_EQ(sum_of(back), -10);
}

TYPED_TEST_P(TensorPoolConformance, OneIsUsedByTwoPoolsAndAResultGoesOn) {
  const pool second({.workers = 1});
  const auto numbers = this->counted(1000);
  EXPECT_EQ(this->pool_->apply(sum_of, numbers), second.apply(sum_of, numbers));
  const auto made = this->pool_->apply([](const tensor& given) { return given.clone(); }, numbers.slice(10, 20));
  EXPECT_EQ(second.apply(sum_of, made), 145);
  const auto back = second.apply([](tensor given) { return given.row(3).reshape({1}); }, made);
  back.fill(0.0);
  EXPECT_EQ(sum_of(made), 145 - 13) << "it is part of that";
}

TYPED_TEST_P(TensorPoolConformance, UsersStructsAndContainersCarryThem) {
  const labelled given{.name = "first", .images = this->filled(4, 1), .labels = {this->counted(3)}};
  const auto back = this->pool_->apply(
      [](labelled seen) {
        seen.name += "!";
        seen.labels.push_back(tensor::full<double>({1}, sum_of(seen.images), TypeParam::where));
        return seen;
      },
      given);
  EXPECT_EQ(back.name, "first!");
  EXPECT_EQ(back.images.device(), TypeParam::where);
  EXPECT_EQ(sum_of(back.labels.at(0)), 3);
  EXPECT_EQ(sum_of(back.labels.at(1)), 4);
  const auto pair = this->pool_->apply([](const tensor& a) { return std::tuple(sum_of(a), a.clone()); }, given.images);
  EXPECT_EQ(std::get<0>(pair), 4);
  EXPECT_TRUE(equal(std::get<1>(pair), given.images));
}

TYPED_TEST_P(TensorPoolConformance, EmptyOnesGoToo) {
  const auto empty = tensor::zeros<float>({0, 3}, TypeParam::where);
  EXPECT_EQ(this->pool_->apply([](const tensor& given) { return given.shape().size(); }, empty), 2U);
}

TYPED_TEST_P(TensorPoolConformance, MapsTakeAndGiveThem) {
  std::vector<tensor> rows;
  for (int row = 0; row < 20; ++row) rows.push_back(this->filled(100, row));
  EXPECT_EQ(this->pool_->map(sum_of, rows)[19], 1900);
  const auto doubled = this->pool_->map(
      [](const tensor& row) {
        const auto made = row.clone();
        scale(made, 2);
        return made;
      },
      rows);
  ASSERT_EQ(doubled.size(), 20U);
  EXPECT_TRUE(doubled[19].device().is_cpu()) << "results of maps come as copies";
  EXPECT_EQ(sum_of(doubled[19]), 3800);
  EXPECT_EQ(sum_of(rows[19]), 1900);
  const auto weights = this->filled(100, 3);
  const auto weighted = this->pool_->map(
      bind_front([](const tensor& by, const tensor& row) { return sum_of(by) * sum_of(row); }, weights), rows);
  EXPECT_EQ(weighted[2], 300 * 200);
  double streamed = 0;
  for (const auto& each : this->pool_->imap([](tensor row) { return row; }, rows)) streamed += sum_of(each);
  EXPECT_EQ(streamed, 19'000);
}

TYPED_TEST_P(TensorPoolConformance, AreChangedByTasksOneAfterTheOther) {
  const auto shared = tensor::zeros<double>({10}, TypeParam::where);
  for (std::size_t round = 0; round < 10; ++round) {
    this->pool_->apply(
        [](const tensor& all, std::size_t which) { all.slice(which, which + 1).fill(static_cast<double>(which) + 1); },
        shared, round);
  }
  EXPECT_TRUE(equal(shared, tensor::arange<double>(1, 11)));
}

TYPED_TEST_P(TensorPoolConformance, WhatIsCopiedIsTheWorkersOwn) {
  const auto by_copy = this->pool_->with({.transfer = transfer::copy});
  const auto numbers = this->counted(1000);
  by_copy.apply(overwrite, numbers);
  EXPECT_EQ(sum_of(numbers), 499'500);
  EXPECT_EQ(by_copy.apply(sum_of, numbers.slice(0, 3)), 3);
  EXPECT_EQ(by_copy.map(sum_of, std::vector{numbers, numbers.slice(1, 3)}), (std::vector<double>{499'500, 3}));
}

TYPED_TEST_P(TensorPoolConformance, WhatIsGivenAwayIsTheCallersNoLonger) {
  const auto giving = this->pool_->with({.transfer = transfer::move});
  auto numbers = this->counted(1000);
  EXPECT_EQ(giving.apply(sum_of, std::move(numbers)), 499'500);
  EXPECT_EQ(numbers.size(), 0U);  // NOLINT(bugprone-use-after-move): that is the question
  std::vector rows = {this->filled(10, 1), this->filled(20, 1)};
  EXPECT_EQ(giving.map(sum_of, std::move(rows)), (std::vector<double>{10, 20}));
  EXPECT_TRUE(rows.empty());  // NOLINT(bugprone-use-after-move): as above
  EXPECT_TRUE(eventually([this] { return this->holds_nothing(); }));
}

TYPED_TEST_P(TensorPoolConformance, AnLvalueStaysTheCallers) {
  const auto giving = this->pool_->with({.transfer = transfer::move});
  auto variable = this->counted(10);
  giving.apply(overwrite, variable);
  giving.map(sum_of, std::vector{variable});
  EXPECT_EQ(sum_of(variable), -10);
}

TYPED_TEST_P(TensorPoolConformance, AWorkerThatKeepsWhatItWasGivenIsTheOnlyOneWhoHasIt) {
  const auto giving = this->pool_->with({.transfer = transfer::move});
  giving.on(0).apply([](tensor given) { kept_by_worker = std::move(given); }, this->counted(1000));
  EXPECT_TRUE(this->holds_nothing());
  EXPECT_EQ(this->pool_->on(0).apply([] { return sum_of(*kept_by_worker); }), 499'500);
  this->pool_->on(0).apply([] { kept_by_worker.reset(); });
}

TYPED_TEST_P(TensorPoolConformance, ATaskThatIsRunAgainAfterADeathFindsWhatItWasGiven) {
  const auto dies_once = [](const tensor& given) {
    if (sum_of(given) == 0) {
      given.fill(1.0);
      static_cast<void>(sum_of(given));  // it is done
      std::abort();
    }
    return sum_of(given);
  };
  const auto patient = this->pool_->with({.retries = 1, .transfer = transfer::move});
  EXPECT_EQ(patient.apply(dies_once, this->filled(10, 0)), 10);
}

TYPED_TEST_P(TensorPoolConformance, WhenTheCallIsRefusedNothingIsGivenAway) {
  const auto giving = this->pool_->with({.transfer = transfer::move});
  auto numbers = this->counted(10);
  this->pool_->close();
  EXPECT_THROW(static_cast<void>(giving.apply_async(sum_of, std::move(numbers))), error);
  EXPECT_EQ(sum_of(numbers), 45);  // NOLINT(bugprone-use-after-move): that is the question
}

TYPED_TEST_P(TensorPoolConformance, HundredsLeaveNothingBehind) {
  for (int round = 0; round < 300; ++round) {
    const auto made = this->pool_->apply([](const tensor& given) { return given.clone(); }, this->filled(64, 1));
    ASSERT_EQ(sum_of(made), 64);
  }
  EXPECT_TRUE(eventually([this] { return this->holds_nothing(); }));
}

REGISTER_TYPED_TEST_SUITE_P(TensorPoolConformance, AnArgumentIsReadWhereItIs, WhatAWorkerWritesTheCallerSees,
                            AViewGoesAsAView, AResultOutlivesItsPool, TheSameOneComesBackAsItself,
                            OneIsUsedByTwoPoolsAndAResultGoesOn, UsersStructsAndContainersCarryThem, EmptyOnesGoToo,
                            MapsTakeAndGiveThem, AreChangedByTasksOneAfterTheOther, WhatIsCopiedIsTheWorkersOwn,
                            WhatIsGivenAwayIsTheCallersNoLonger, AnLvalueStaysTheCallers,
                            AWorkerThatKeepsWhatItWasGivenIsTheOnlyOneWhoHasIt,
                            ATaskThatIsRunAgainAfterADeathFindsWhatItWasGiven, WhenTheCallIsRefusedNothingIsGivenAway,
                            HundredsLeaveNothingBehind);

}  // namespace muster::test
