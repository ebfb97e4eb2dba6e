// SPDX-License-Identifier: BSL-1.0
// Which of the waits of a circle is ended.
#include <muster/pool/detail/local_waits.hpp>

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include <gmock/gmock.h>

namespace muster::local_waits_test {
namespace {

using detail::local_wait;
using detail::local_waits;
using detail::local_worker_set;
using testing::ElementsAre;
using testing::IsEmpty;

enum class progress { untouched, between_elements, running };

/// What a worker waits for: how far it is, and whom it needs.
struct plan {
  progress how_far = progress::untouched;
  std::vector<std::size_t> needed;
};

class fake_wait final : public local_wait {
public:
  explicit fake_wait(const plan& what) : how_far_(what.how_far) {
    for (const auto each : what.needed) needed_.set(each);
  }

  local_worker_set needed() override { return has_ended_ ? local_worker_set() : needed_; }
  bool end_hope(bool rest) override {
    if (how_far_ == progress::running || (how_far_ == progress::between_elements && !rest)) return false;
    return has_ended_ = true;
  }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

private:
  const progress how_far_;
  local_worker_set needed_;
  bool has_ended_ = false;
};

/// Has the workers wait, one after the other; gives those whose waits were ended then.
std::vector<std::size_t> ended_of(const std::vector<plan>& plans, const std::vector<std::size_t>& order) {
  std::deque<fake_wait> waits;
  for (const auto& each : plans) waits.emplace_back(each);
  local_waits all(waits.size());
  std::vector<std::optional<local_waits::scope>> entered(waits.size());
  for (const auto worker : order) entered[worker].emplace(all, worker, waits[worker]);
  std::vector<std::size_t> found;
  for (std::size_t worker = 0; worker < waits.size(); ++worker) {
    if (waits[worker].has_ended()) found.push_back(worker);
  }
  return found;
}

TEST(LocalWaits, WhoClosesACircleEndsItsOwnWaitIfItCan) {
  const std::vector<plan> waits{{progress::untouched, {1}}, {progress::untouched, {0}}};
  EXPECT_THAT(ended_of(waits, {0, 1}), ElementsAre(1));
  EXPECT_THAT(ended_of(waits, {1, 0}), ElementsAre(0));
}

TEST(LocalWaits, NobodyIsEndedWhereThereIsNoCircle) {
  const std::vector<plan> waits{
      {progress::untouched, {1}}, {progress::untouched, {2}}, {progress::untouched, {3}}, {progress::untouched, {}}};
  EXPECT_THAT(ended_of(waits, {3, 2, 1, 0}), IsEmpty());
  EXPECT_THAT(ended_of(waits, {0, 1, 2, 3}), IsEmpty());
}

TEST(LocalWaits, WhatHasBegunIsEndedOnlyWhereNothingElseIsThere) {
  const std::vector<plan> waits{{progress::untouched, {1}}, {progress::between_elements, {0}}};
  EXPECT_THAT(ended_of(waits, {0, 1}), ElementsAre(0));
  EXPECT_THAT(ended_of(waits, {1, 0}), ElementsAre(0));
  const std::vector<plan> begun{{progress::running, {1}}, {progress::between_elements, {0}}};
  EXPECT_THAT(ended_of(begun, {0, 1}), ElementsAre(1));
  EXPECT_THAT(ended_of(begun, {1, 0}), ElementsAre(1));
}

TEST(LocalWaits, WhereOneCircleCannotBeBrokenAnotherIs) {
  const std::vector<plan> waits{{progress::running, {1, 2}}, {progress::running, {0}}, {progress::untouched, {0}}};
  EXPECT_THAT(ended_of(waits, {1, 2, 0}), ElementsAre(2));
  EXPECT_THAT(ended_of(waits, {0, 1, 2}), ElementsAre(2));
  EXPECT_THAT(ended_of(waits, {2, 0, 1}), ElementsAre(2));
}

TEST(LocalWaits, WhatRunsEverywhereIsWaitedFor) {
  const std::vector<plan> waits{{progress::running, {1}}, {progress::running, {0}}};
  EXPECT_THAT(ended_of(waits, {0, 1}), IsEmpty());
}

}  // namespace
}  // namespace muster::local_waits_test
