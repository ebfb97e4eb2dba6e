// SPDX-License-Identifier: BSL-1.0
// What the numbers of changes say, however many there were. Who may die when: share_model_test.cpp.
#include <muster/memory/detail/share_protocol.hpp>

#include <atomic>
#include <cstdint>

#include <gtest/gtest.h>

namespace muster::share_protocol_test {
namespace {

constexpr participant_id first{2};
constexpr participant_id second{3};
constexpr std::uint64_t beyond_a_signature = std::uint64_t{1} << 32U;

// The first participant changes a count, and the second overwrites that; or not.
class ShareProtocol : public testing::TestWithParam<std::uint64_t> {
protected:
  void begin_change() { ++first_.change; }
  void change(std::atomic<std::uint64_t>& count) { change_as(first, first_, count); }
  void overwrite(std::atomic<std::uint64_t>& count) {
    begin_change_of(second_);
    change_as(second, second_, count);
  }
  [[nodiscard]] bool has_taken_place(const std::atomic<std::uint64_t>& count) const {
    return share_protocol::took_place(count, first_.confirmed, first, first_.change);
  }
  static std::atomic<std::uint64_t> held_once() { return share_word(1, participant_id::host, 1).bits(); }

  participant_entry first_{.word = 0, .change = GetParam(), .confirmed = 0, .warm = 0};

private:
  static void begin_change_of(participant_entry& who) { ++who.change; }
  void change_as(participant_id self, participant_entry& mine, std::atomic<std::uint64_t>& count) {
    const auto entry_of = [this](participant_id who) {
      return who == first ? &first_ : who == second ? &second_ : nullptr;
    };
    EXPECT_TRUE(share_protocol::change_count(count, 1, self, mine.change, entry_of));
  }

  participant_entry second_{.word = 0, .change = 0, .confirmed = 0, .warm = 0};
};

TEST_P(ShareProtocol, AChangeThatWasNotMadeDidNotTakePlaceThoughNoneBeforeItWasConfirmed) {
  const auto count = held_once();
  begin_change();
  EXPECT_FALSE(has_taken_place(count));
}

TEST_P(ShareProtocol, AChangeThatWasMadeTookPlace) {
  auto count = held_once();
  begin_change();
  change(count);
  EXPECT_TRUE(has_taken_place(count));
}

TEST_P(ShareProtocol, AChangeThatWasMadeAndOverwrittenTookPlaceAndTheNextDidNot) {
  auto count = held_once();
  begin_change();
  change(count);
  overwrite(count);
  EXPECT_TRUE(has_taken_place(count));
  begin_change();
  EXPECT_FALSE(has_taken_place(count));
}

// As that of a block that is held for days.
TEST_P(ShareProtocol, AnOldSignatureThatIsOverwrittenSaysNothingOfLaterChanges) {
  auto old = held_once();
  first_.change = 0;
  begin_change();
  change(old);
  first_.change = GetParam() + 10;  // so that none below has the very half that was signed
  auto recent = held_once();
  begin_change();
  change(recent);
  overwrite(recent);
  begin_change();
  overwrite(old);
  EXPECT_FALSE(has_taken_place(recent));
  change(recent);
  overwrite(recent);
  EXPECT_TRUE(has_taken_place(recent));
}

// Somebody has overwritten the count, or the number.
TEST_P(ShareProtocol, ASignatureThatNobodyHasMadeConfirmsNothingThatIsYetToCome) {
  auto count = held_once();
  count = share_word(GetParam() + 1, first, 1).bits();
  overwrite(count);
  EXPECT_LE(first_.confirmed, GetParam());
}

INSTANTIATE_TEST_SUITE_P(After, ShareProtocol,
                         testing::Values(0, (beyond_a_signature / 2) - 1, beyond_a_signature / 2,
                                         beyond_a_signature - 2, beyond_a_signature - 1, beyond_a_signature,
                                         3 * beyond_a_signature / 2, 5 * beyond_a_signature + 7));

}  // namespace
}  // namespace muster::share_protocol_test
