// SPDX-License-Identifier: BSL-1.0
// Tensors by reference, as copies, and given away: per call.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::transfer_test {
namespace {

double sum(const tensor& of) {
  double total = 0;
  for (const double each : of.contiguous().span<double>()) total += each;
  return total;
}
void overwrite(const tensor& given) { given.fill(-1.0); }

class Transfer : public testing::Test {
protected:
  [[nodiscard]] bool all_is_free() const {
    const auto found = domain_->blocks().read_statistics();
    return found.holds == 0 && found.live_blocks == 0;
  }
  // The pool's own blocks count as live until it is gone.
  [[nodiscard]] std::size_t holds() const { return domain_->blocks().read_statistics().holds; }

  const std::shared_ptr<domain> domain_ = domain::of_program();
  pool pool_{{.workers = 1}};
  const submitter by_copy_ = pool_.with({.transfer = transfer::copy});
  const submitter giving_ = pool_.with({.transfer = transfer::move});
};

TEST_F(Transfer, ACopiedViewBringsItsElementsOnly) {
  const auto numbers = tensor::arange<double>(12).reshape({3, 4});
  const auto size = by_copy_.apply(
      [](const tensor& column) { return std::pair(column.storage()->bytes().size(), column.to_vector<double>()); },
      numbers.slice(1, 2, 1));
  EXPECT_EQ(size.second, (std::vector<double>{1, 5, 9}));
}

TEST_F(Transfer, ElementsBoundValuesAndStreamsAreCopiedToo) {
  std::vector<tensor> rows;
  for (int row = 0; row < 20; ++row) rows.push_back(tensor::full<double>({100}, 1.0));
  const auto weights = tensor::full<double>({100}, 2.0);
  const auto both = bind_front(
      [](const tensor& bound, const tensor& row) {
        const auto found = sum(row);
        overwrite(bound);
        overwrite(row);
        return found;
      },
      weights);
  EXPECT_EQ(by_copy_.map(both, rows)[19], 100);
  for (const auto each : by_copy_.imap(both, rows)) EXPECT_EQ(each, 100);
  const auto one_by_one = pool_.with({.chunk = 1, .transfer = transfer::copy});
  for (const auto each : one_by_one.imap(
           [](const tensor& row) {
             overwrite(row);
             return 1;
           },
           rows))
    EXPECT_EQ(each, 1);
  EXPECT_EQ(sum(weights), 200);
  for (const auto& row : rows) EXPECT_EQ(sum(row), 100);
}

TEST_F(Transfer, ACopyGoesToAPoolWithMemoryOfItsOwn) {
  const pool other({.workers = 1, .arena_bytes = std::size_t{64} << 20U, .isolated = true});
  EXPECT_EQ(other.with({.transfer = transfer::copy}).apply(sum, tensor::arange<double>(1000)), 499'500);
}

TEST_F(Transfer, AContainerThatIsGivenAwayIsEmptyThen) {
  std::vector<tensor> several = {tensor::ones<double>({10}), tensor::ones<double>({20})};
  EXPECT_EQ(giving_.apply([](const std::vector<tensor>& all) { return all.size(); }, std::move(several)), 2U);
  EXPECT_TRUE(several.empty());  // NOLINT(bugprone-use-after-move): that is the question
  std::vector<tensor> rows = {tensor::ones<double>({10}), tensor::ones<double>({20})};
  EXPECT_EQ(giving_.map(sum, std::move(rows)), (std::vector<double>{10, 20}));
  EXPECT_TRUE(rows.empty());  // NOLINT(bugprone-use-after-move): as above
  EXPECT_TRUE(test::eventually([&] { return holds() == 0; }));
}

TEST_F(Transfer, AnLvalueStaysTheCallers) {
  const auto constant = tensor::arange<double>(10);
  auto variable = tensor::arange<double>(10);
  giving_.apply(overwrite, constant);
  giving_.apply(overwrite, variable);
  EXPECT_EQ(sum(constant), -10);
  EXPECT_EQ(sum(variable), -10);
  giving_.map(sum, std::vector{variable});
  EXPECT_EQ(sum(variable), -10);
}

TEST_F(Transfer, WithoutMoveAnRvalueStaysAsItIs) {
  auto numbers = tensor::arange<double>(10);
  pool_.apply(overwrite, std::move(numbers));
  EXPECT_EQ(sum(numbers), -10);  // NOLINT(bugprone-use-after-move): that is the question
}

TEST_F(Transfer, WhenTheCallIsRefusedNothingIsGivenAway) {
  auto numbers = tensor::arange<double>(10);
  pool_.close();
  EXPECT_THROW(static_cast<void>(giving_.apply_async(sum, std::move(numbers))), error);
  EXPECT_EQ(sum(numbers), 45);  // NOLINT(bugprone-use-after-move): that is the question
  std::vector<tensor> rows = {numbers};
  EXPECT_THROW(static_cast<void>(giving_.map(sum, std::move(rows))), error);
  EXPECT_EQ(rows.size(), 1U);  // NOLINT(bugprone-use-after-move): as above
}

TEST_F(Transfer, AfterCallsOfAllKindsAllIsFree) {
  for (int round = 0; round < 20; ++round) {
    static_cast<void>(giving_.apply_async(sum, tensor::arange<double>(100)));
    static_cast<void>(by_copy_.apply_async(sum, tensor::arange<double>(100)));
    static_cast<void>(giving_.map_async(sum, std::vector{tensor::arange<double>(100)}));
  }
  pool_.drain();
  EXPECT_TRUE(test::eventually([&] { return all_is_free(); }));
}

}  // namespace
}  // namespace muster::transfer_test
