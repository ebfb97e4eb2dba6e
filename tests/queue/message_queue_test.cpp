// SPDX-License-Identifier: BSL-1.0
// What both kinds of queues promise, among threads and among processes.
#include <muster/memory/domain.hpp>
#include <muster/queue/message_queue.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/memory/detail/keepsake.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

#include "message_support.hpp"

namespace muster::message_queue_test {
namespace {

using namespace std::chrono_literals;
using test::member;
using test::parcel;

constexpr std::size_t tail_offset = 256;
constexpr std::size_t first_cell = 512;

struct shared_kind {
  template <class T>
  using queue = shared_queue<T>;
};
struct p2p_kind {
  template <class T>
  using queue = p2p_queue<T>;
};

// What it throws.
std::optional<error> refusal_by(const std::function<void()>& wrong) {
  try {
    wrong();
  } catch (const error& refusal) {
    return refusal;
  }
  return std::nullopt;
}

template <class... Words>
auto is_refusal(errc code, Words... words) {
  return testing::Optional(testing::AllOf(testing::Property("code", &error::code, make_error_code(code)),
                                          testing::Property("what", &error::what, testing::HasSubstr(words))...));
}

template <class Kind>
class MessageQueue : public testing::Test {
protected:
  using numbers = typename Kind::template queue<std::uint64_t>;
  using parcels = typename Kind::template queue<parcel>;

  static numbers make_numbers(std::size_t capacity) { return numbers(capacity, {.spin = 0ns}); }
  static parcels make_parcels(std::size_t capacity) { return parcels(capacity, {.spin = 0ns}); }

  void TearDown() override { EXPECT_TRUE(test::is_all_free(*domain_)); }

  std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{64} << 20U, .max_participants = 64, .max_blocks = 512, .inherited = true});
};

using kinds = testing::Types<shared_kind, p2p_kind>;
TYPED_TEST_SUITE(MessageQueue, kinds);

TYPED_TEST(MessageQueue, GivesInTheOrderInWhichItTook) {
  const auto queue = this->make_numbers(3);
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (std::uint64_t each = 0; each < 3; ++each) EXPECT_TRUE(queue.try_push(round * 3 + each));
    for (std::uint64_t each = 0; each < 3; ++each) EXPECT_EQ(queue.try_pop(), round * 3 + each);
  }
}

TYPED_TEST(MessageQueue, HoldsItsCapacityAndNoMore) {
  const auto queue = this->make_numbers(5);
  EXPECT_EQ(queue.capacity(), 5U);
  for (std::uint64_t each = 0; each < 5; ++each) EXPECT_TRUE(queue.try_push(each));
  EXPECT_EQ(queue.size(), 5U);
  EXPECT_FALSE(queue.try_push(5));
  EXPECT_FALSE(queue.push_for(5, 1ms));
  EXPECT_EQ(queue.pop(), 0U);
  EXPECT_EQ(queue.size(), 4U);
  EXPECT_TRUE(queue.push(5));
}

TYPED_TEST(MessageQueue, AnEmptyOneGivesNothingWhenTheTimeIsOver) {
  const auto queue = this->make_numbers(1);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
  const auto start = clock::now();
  EXPECT_EQ(queue.pop_for(20ms), std::nullopt);
  EXPECT_GE(clock::now() - start, 20ms);
  EXPECT_FALSE(queue.lease_until(deadline::after(1ms)));
  EXPECT_FALSE(queue.is_closed());
}

TYPED_TEST(MessageQueue, AClosedOneTakesNothingAndGivesWhatItHas) {
  const auto queue = this->make_numbers(2);
  queue.push(1);
  queue.close();
  EXPECT_TRUE(queue.is_closed());
  EXPECT_FALSE(queue.push(2));
  EXPECT_FALSE(queue.try_push(2));
  EXPECT_EQ(queue.pop(), 1U);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_FALSE(queue.lease());
}

TYPED_TEST(MessageQueue, ALeaseThatIsAcknowledgedIsOut) {
  const auto queue = this->make_numbers(2);
  queue.push(1);
  {
    auto first = queue.lease();
    EXPECT_EQ(**first, 1U);
    first->ack();
    first->ack();
    EXPECT_EQ(**first, 1U);
  }
  EXPECT_EQ(queue.try_pop(), std::nullopt);
}

TYPED_TEST(MessageQueue, ALeaseThatIsNotComesFirstAgain) {
  const auto queue = this->make_numbers(2);
  queue.push(1);
  queue.push(2);
  {
    const auto first = queue.lease();
    EXPECT_EQ(**first, 1U);
    EXPECT_FALSE(queue.try_push(3));  // it has its place
  }
  EXPECT_EQ(queue.pop(), 1U);
  EXPECT_EQ(queue.pop(), 2U);
}

TYPED_TEST(MessageQueue, AnEncodedValueTravelsInTheCellOrInABlock) {
  const auto queue = this->make_parcels(4);
  queue.push(parcel::of(1, 0, "short"));
  queue.push(parcel::of(2, 0, std::string(100'000, 'x')));
  queue.push(parcel::of(3, 2, "with blocks"));
  queue.push(parcel::of(4, 60, std::string(1000, 'y')));
  EXPECT_EQ(queue.pop()->text, "short");
  EXPECT_EQ(queue.pop()->text, std::string(100'000, 'x'));
  auto third = queue.pop();
  EXPECT_EQ(third->blocks.size(), 2U);
  EXPECT_TRUE(third->is_whole());
  auto fourth = queue.pop();
  EXPECT_EQ(fourth->blocks.size(), 60U);
  EXPECT_TRUE(fourth->is_whole());
}

TYPED_TEST(MessageQueue, RoomInTheCellsIsAsAskedFor) {
  using queue_type = typename TypeParam::template queue<std::string>;
  const queue_type queue(2, {.inline_bytes = 5000, .spin = 0ns});
  queue.push(std::string(4000, 'x'));
  EXPECT_EQ(this->domain_->blocks().read_statistics().live_blocks + this->domain_->blocks().read_statistics().holds,
            1U);
  EXPECT_EQ(queue.pop(), std::string(4000, 'x'));
}

TYPED_TEST(MessageQueue, PlainValuesThatDoNotFitTravelInBlocks) {
  using big = std::array<std::uint64_t, 100>;
  const typename TypeParam::template queue<big> queue(2, {.inline_bytes = 8, .spin = 0ns});
  big value{};
  value[99] = 99;
  queue.push(value);
  EXPECT_EQ(queue.pop(), value);
}

TYPED_TEST(MessageQueue, BlocksArriveAsTheSameMemory) {
  const auto queue = this->make_parcels(2);
  const auto sent = parcel::of(7, 1);
  queue.push(sent);
  const auto received = queue.pop();
  EXPECT_EQ(received->blocks[0].data(), sent.blocks[0].data());
}

TYPED_TEST(MessageQueue, WhatIsKeptOfALeaseIsTheKeepersOwn) {
  const auto queue = this->make_parcels(2);
  queue.push(parcel::of(1, 2));
  parcel kept;
  {
    const auto first = queue.lease();
    kept = **first;
  }
  const auto again = queue.pop();  // it is whole, too
  EXPECT_TRUE(again->is_whole());
  EXPECT_TRUE(kept.is_whole());
}

// All descriptors that there are, as holds on one block.
class all_descriptors {
public:
  explicit all_descriptors(domain& of) : memory_(of.blocks()), block_(memory_.allocate_shared(1)) { take(); }
  all_descriptors(const all_descriptors&) = delete;
  all_descriptors& operator=(const all_descriptors&) = delete;
  ~all_descriptors() {
    while (!names_.empty()) give_back_one();
  }
  void take() {
    try {
      for (;;) names_.push_back(memory_.send(block_));
    } catch (const error& refusal) {
      EXPECT_THAT(refusal.what(), testing::HasSubstr("max_blocks"));
    }
  }
  void give_back_one() {
    memory_.receive(names_.back()).reset();
    names_.pop_back();
  }

private:
  arena& memory_;
  shared_block block_;
  std::vector<std::uint64_t> names_;
};

TYPED_TEST(MessageQueue, ALeaseOfWhichSomethingIsKeptGoesBackThoughAllDescriptorsAreTaken) {
  const auto queue = this->make_parcels(2);
  queue.push(parcel::of(1, 2));
  queue.close();
  std::optional<all_descriptors> taken;
  parcel kept;
  {
    const auto first = queue.lease();
    kept = **first;
    taken.emplace(*this->domain_);
  }
  const auto again = queue.pop_for(1ms);
  ASSERT_TRUE(again) << "it is withheld";
  EXPECT_TRUE(again->is_whole());
  EXPECT_TRUE(kept.is_whole());
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TYPED_TEST(MessageQueue, ALeaseForWhichThereAreNoDescriptorsIsRefusedAndTheMessageStays) {
  const auto queue = this->make_parcels(2);
  queue.push(parcel::of(1, 2));
  all_descriptors taken(*this->domain_);
  for (int times = 0; times < 2; ++times) {
    EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.lease()); }), is_refusal(errc::out_of_memory, "max_blocks"));
  }
  taken.give_back_one();
  EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.lease()); }), is_refusal(errc::out_of_memory, "max_blocks"))
      << "there is one for two";
  taken.give_back_one();
  EXPECT_TRUE((*queue.lease())->is_whole());
  taken.take();
  EXPECT_EQ(queue.pop_for(1ms)->number, 1U) << "needs none";
}

// A value of which the receiver makes a copy in shared memory.
struct copied {
  std::uint64_t number = 0;
  shared_block copy;
  void save(output_archive& out) const { out(number); }
  void load(input_archive& in) {
    in(number);
    copy = domain::of_program()->blocks().allocate_shared(std::size_t{8} << 20U);
  }
};

TYPED_TEST(MessageQueue, ALeaseForWhoseCopyTheArenaHasNoRoomIsRefusedAndTheMessageStays) {
  const typename TypeParam::template queue<copied> queue(2, {.spin = 0ns});
  queue.push(copied{.number = 7, .copy = {}});
  auto most = this->domain_->blocks().allocate_shared(std::size_t{60} << 20U);
  for (int times = 0; times < 2; ++times) {
    EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.lease()); }), is_refusal(errc::out_of_memory, "is needed"));
  }
  most.reset();
  auto lease = queue.try_lease();
  ASSERT_TRUE(lease) << "it is lost";
  EXPECT_EQ((*lease)->number, 7U);
  lease->ack();
}

TYPED_TEST(MessageQueue, WhatIsPoppedAndHasNoRoomForItsCopyIsOut) {
  const typename TypeParam::template queue<copied> queue(2, {.spin = 0ns});
  queue.push(copied{.number = 7, .copy = {}});
  const auto most = this->domain_->blocks().allocate_shared(std::size_t{60} << 20U);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.pop()); }), is_refusal(errc::out_of_memory));
  EXPECT_EQ(queue.size(), 0U);
}

TYPED_TEST(MessageQueue, WhatWasKeptOfALeaseAndAcknowledgedIsHeldOnce) {
  const auto queue = this->make_parcels(2);
  queue.push(parcel::of(1, 2));
  parcel kept;
  const auto holds = [this] { return this->domain_->blocks().read_statistics().holds; };
  {
    auto first = queue.lease();
    kept = **first;
    first->ack();
  }
  EXPECT_TRUE(kept.is_whole());
  const auto with = holds();
  kept = parcel{};
  EXPECT_EQ(with - holds(), 2U);
}

TYPED_TEST(MessageQueue, AValueThatIsGivenAwayIsAsIfNewOnceItHasBeenPushed) {
  const auto queue = this->make_parcels(1);
  auto given = parcel::of(1, 2);
  EXPECT_TRUE(queue.push(std::move(given), transfer::move));
  EXPECT_TRUE(given.blocks.empty());  // NOLINT(bugprone-use-after-move): that is what is tested
  auto refused = parcel::of(2, 1);
  EXPECT_FALSE(queue.try_push(std::move(refused), transfer::move));
  EXPECT_FALSE(queue.push_for(std::move(refused), 1ms, transfer::move));  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(refused.blocks.size() == 1 && refused.is_whole());          // NOLINT(bugprone-use-after-move)
  const auto received = queue.pop();
  EXPECT_TRUE(received->blocks.size() == 2 && received->is_whole());
  EXPECT_TRUE(this->domain_->blocks().is_sole(received->blocks[0])) << "nobody else has it";
  EXPECT_TRUE(queue.push(std::move(refused), transfer::reference));  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(refused.blocks.size(), 1U);                              // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(queue.pop()->number, 2U);
  EXPECT_TRUE(queue.push(refused, transfer::move)) << "an lvalue stays";
  EXPECT_EQ(refused.blocks.size(), 1U);
  EXPECT_EQ(queue.pop()->blocks[0].data(), refused.blocks[0].data());
}

TYPED_TEST(MessageQueue, WhatIsLeftInItGoesWithIt) {
  const auto queue = this->make_parcels(4);
  queue.push(parcel::of(1, 3));
  queue.push(parcel::of(2, 0, std::string(5000, 'x')));
}

TYPED_TEST(MessageQueue, AMessageThatFindsNoRoomLeavesNothing) {
  const auto queue = this->make_parcels(1);
  queue.push(parcel::of(1));
  EXPECT_FALSE(queue.try_push(parcel::of(2, 2, std::string(1000, 'x'))));
  queue.close();
  EXPECT_FALSE(queue.push(parcel::of(2, 2)));
}

TYPED_TEST(MessageQueue, ItCanBeInAnotherAndInItself) {
  using outer = typename TypeParam::template queue<typename TestFixture::numbers>;
  const outer carrier(2, {.spin = 0ns});
  {
    const auto inner = this->make_numbers(2);
    inner.push(1);
    carrier.push(inner);
  }
  const auto arrived = carrier.pop();
  EXPECT_EQ(arrived->pop(), 1U);
}

TYPED_TEST(MessageQueue, WhereNoMemoryCanGoItSaysSo) {
  const auto queue = this->make_numbers(1);
  try {
    static_cast<void>(codec<typename TestFixture::numbers>::size(queue));
    FAIL();
  } catch (const error& found) {
    EXPECT_EQ(found.code(), errc::not_serializable);
    EXPECT_THAT(found.what(), testing::HasSubstr("pass it as an argument"));
  }
}

// ---- bad input

TYPED_TEST(MessageQueue, ACapacityThatCannotBeIsRefusedWithTheNumberAndWhatCanBe) {
  const auto refuse = [this](std::size_t capacity) {
    return refusal_by([&] { static_cast<void>(this->make_numbers(capacity)); });
  };
  for (const std::size_t wrong : {std::size_t{0}, ring_position::most_cells + 1, SIZE_MAX / 2}) {
    EXPECT_THAT(refuse(wrong), is_refusal(errc::invalid_argument, "a queue of " + std::to_string(wrong) + " messages",
                                          "1 to 16777215"));
  }
  EXPECT_THAT(refuse(static_cast<std::size_t>(-3)),
              is_refusal(errc::invalid_argument, "a queue of -3 (as std::size_t: 18446744073709551613) messages"));
  EXPECT_EQ(this->domain_->keepsakes().size(), 0U);
}

TYPED_TEST(MessageQueue, RoomThatCannotBeIsRefusedWithTheNumberAndWhatCanBe) {
  using queue_type = typename TypeParam::template queue<std::string>;
  const auto refuse = [](std::size_t room) {
    return refusal_by([&] { const queue_type queue(2, {.inline_bytes = room, .spin = 0ns}); });
  };
  for (const std::size_t wrong : {(std::size_t{1} << 30U) - 15, std::size_t{1} << 62U}) {
    EXPECT_THAT(refuse(wrong), is_refusal(errc::invalid_argument, "with " + std::to_string(wrong) + " bytes of room",
                                          "up to 1073741808 bytes"));
  }
  EXPECT_THAT(refuse(SIZE_MAX),
              is_refusal(errc::invalid_argument, "with -1 (as std::size_t: 18446744073709551615) bytes of room"));
}

TYPED_TEST(MessageQueue, CellsThatDoNotFitIntoTheArenaAreRefusedWithWhatThereIs) {
  EXPECT_THAT(refusal_by([this] { static_cast<void>(this->make_numbers(ring_position::most_cells)); }),
              is_refusal(errc::out_of_memory, "1.0 GiB is needed", "the arena has 64.0 MiB"));
  EXPECT_EQ(this->domain_->keepsakes().size(), 0U);
}

// What was refused has left nothing, and the queue goes on.
template <class Queue>
void expect_goes_on(const Queue& queue) {
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_TRUE(queue.push(parcel::of(1, 2, std::string(1000, 'x'))));
  const auto found = queue.pop();
  EXPECT_EQ(found->number, 1U);
  EXPECT_TRUE(found->is_whole());
}

TYPED_TEST(MessageQueue, AMessageLargerThanTheArenaIsRefusedWithWhatThereIs) {
  const auto queue = this->make_parcels(2);
  const auto whole = parcel::of(7, 1, std::string(std::size_t{65} << 20U, 'x'));
  EXPECT_THAT(refusal_by([&] { queue.push(whole); }),
              is_refusal(errc::out_of_memory, "65.0 MiB is needed", "the arena has 64.0 MiB", "free"));
  EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.try_push(whole)); }), is_refusal(errc::out_of_memory));
  expect_goes_on(queue);
}

TYPED_TEST(MessageQueue, AMessageForWhichTheArenaHasNoRoomNowIsRefusedUntilThereIs) {
  const auto queue = this->make_parcels(2);
  auto most = this->domain_->blocks().allocate_shared(std::size_t{60} << 20U);
  const auto large = parcel::of(1, 0, std::string(std::size_t{8} << 20U, 'x'));
  EXPECT_THAT(refusal_by([&] { queue.push(large); }),
              is_refusal(errc::out_of_memory, "8.0 MiB is needed", "in use", "cached by this process", "free"));
  most.reset();
  EXPECT_TRUE(queue.push(large));
  EXPECT_EQ(queue.pop()->text.size(), large.text.size());
}

TYPED_TEST(MessageQueue, AMessageWithMoreBlocksThanOneCanHaveIsRefusedWithBothNumbers) {
  const auto queue = this->make_parcels(2);
  parcel many = parcel::of(1, 1);
  many.blocks.resize(message_form::most_attachments + 1, many.blocks[0]);
  EXPECT_THAT(refusal_by([&] { queue.push(many); }),
              is_refusal(errc::not_serializable, "65536 shared blocks", "65535 blocks", "send several"));
  expect_goes_on(queue);
}

TYPED_TEST(MessageQueue, AMessageWithMoreBlocksThanThereAreDescriptorsIsRefusedAndHoldsNone) {
  const auto queue = this->make_parcels(2);
  parcel many = parcel::of(1, 1);
  many.blocks.resize(600, many.blocks[0]);
  EXPECT_THAT(refusal_by([&] { queue.push(many); }),
              is_refusal(errc::out_of_memory, "all 512 descriptors", "max_blocks"));
  many.blocks.resize(400);
  EXPECT_TRUE(queue.push(many)) << "all that were held for the other are free again";
  EXPECT_EQ(queue.pop()->blocks.size(), 400U);
  many.blocks.clear();
  expect_goes_on(queue);
}

template <class Queue>
void expect_every_call_refused(const Queue& nothing) {
  const auto refused = is_refusal(errc::invalid_argument, "a queue was used that there is not", "assign");
  EXPECT_FALSE(nothing);
  EXPECT_THAT(refusal_by([&] { nothing.push(1); }), refused);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(nothing.try_push(1)); }), refused);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(nothing.pop()); }), refused);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(nothing.pop_for(1ms)); }), refused);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(nothing.try_pop()); }), refused);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(nothing.lease()); }), refused);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(nothing.try_lease()); }), refused);
  EXPECT_THAT(refusal_by([&] { nothing.close(); }), refused);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(nothing.is_closed()); }), refused);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(nothing.size()); }), refused);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(nothing.capacity()); }), refused);
}

TYPED_TEST(MessageQueue, OneThatThereIsNotRefusesEveryCallAndSaysWhy) {
  typename TestFixture::numbers nothing;
  expect_every_call_refused(nothing);
  nothing = this->make_numbers(1);
  EXPECT_TRUE(nothing.push(1));
}

TYPED_TEST(MessageQueue, OneThatWasMovedFromRefusesEveryCallAndTheOtherGoesOn) {
  auto first = this->make_numbers(1);
  first.push(7);
  const auto second = std::move(first);
  expect_every_call_refused(first);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(second.pop(), 7U);
}

TYPED_TEST(MessageQueue, OneThatThereIsNotArrivesAsSuch) {
  const typename TypeParam::template queue<typename TestFixture::numbers> carrier(1, {.spin = 0ns});
  carrier.push({});
  const auto arrived = carrier.pop();
  ASSERT_TRUE(arrived);
  expect_every_call_refused(*arrived);
}

// One block of a domain that is not the program's.
class elsewhere final : public attachment_source {
public:
  explicit elsewhere(std::size_t bytes) : block_(memory().allocate_shared(bytes)) {}
  [[nodiscard]] const shared_block& block() const { return block_; }
  shared_block take(std::uint64_t) override { return memory().borrow(memory().name_of(block_)); }

private:
  arena& memory() { return domain_->blocks(); }

  std::shared_ptr<domain> domain_ = std::make_shared<domain>(domain_options{.arena_bytes = std::size_t{4} << 20U});
  shared_block block_;
};

TYPED_TEST(MessageQueue, ABlockOfAnotherDomainIsNotPushed) {
  const auto queue = this->make_parcels(2);
  elsewhere foreign(1000);
  parcel mixed = parcel::of(1, 2);
  mixed.blocks.insert(mixed.blocks.begin() + 1, foreign.block());
  EXPECT_THAT(refusal_by([&] { queue.push(mixed); }),
              is_refusal(errc::invalid_argument, "a block of 1000 bytes belongs to another domain", "copy it"));
  mixed.blocks.clear();
  expect_goes_on(queue);
}

TYPED_TEST(MessageQueue, OfAnotherDomainIsRefusedByWhoReceivesIt) {
  using numbers = typename TestFixture::numbers;
  const auto kind = std::is_same_v<TypeParam, p2p_kind> ? queue_kind::p2p : queue_kind::shared;
  const auto shape = ring_shape::of(kind, 9, 8, 0ns);
  elsewhere foreign(shape.total_bytes());
  static_cast<void>(ring_memory::make(foreign.block().bytes(), shape));
  const auto mine = this->make_numbers(1);
  test::ticket<numbers> ours(mine);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(codec<numbers>::decode(ours.frame(), &foreign)); }),
              is_refusal(errc::invalid_argument, "a queue of 9 messages", "another domain"));
  ours.cancel();
}

// A value that throws on one of its ways.
struct reluctant {
  enum { encode, decode, decode_for_want_of_memory };
  int when = -1;
  void save(output_archive& out) const {
    if (when == encode) throw std::runtime_error("not now");
    out(when);
  }
  void load(input_archive& in) {
    in(when);
    if (when == decode) throw std::runtime_error("not this one");
    if (when == decode_for_want_of_memory) throw std::bad_alloc();
  }
};

TYPED_TEST(MessageQueue, WhatCannotBeEncodedIsNotPushedAndWhatCannotBeDecodedIsOut) {
  const typename TypeParam::template queue<reluctant> queue(2, {.spin = 0ns});
  EXPECT_THROW(queue.push(reluctant{.when = reluctant::encode}), std::runtime_error);
  EXPECT_EQ(queue.size(), 0U);
  queue.push(reluctant{.when = reluctant::decode});
  EXPECT_THROW(static_cast<void>(queue.pop()), std::runtime_error);
  queue.push(reluctant{.when = reluctant::decode});
  EXPECT_THROW(static_cast<void>(queue.lease()), std::runtime_error);
  EXPECT_EQ(queue.size(), 0U);
  queue.push(reluctant{.when = reluctant::decode_for_want_of_memory});
  EXPECT_THROW(static_cast<void>(queue.lease()), std::bad_alloc) << "it may always want so much";
  EXPECT_EQ(queue.size(), 0U);
}

// ---- threads

TYPED_TEST(MessageQueue, SleepersAreWokenByAMessageAndByRoom) {
  const auto queue = this->make_numbers(1);
  constexpr std::uint64_t count = 2000;
  std::thread producer([&] {
    for (std::uint64_t each = 0; each < count; ++each) EXPECT_TRUE(queue.push(each));
  });
  for (std::uint64_t each = 0; each < count; ++each) EXPECT_EQ(queue.pop(), each);
  producer.join();
}

TYPED_TEST(MessageQueue, SleepersAreToldOfTheEnd) {
  const auto empty = this->make_numbers(1);
  const auto full = this->make_numbers(1);
  full.push(1);
  std::thread consumer([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
  std::thread producer([&] { EXPECT_FALSE(full.push(2)); });
  empty.close();
  full.close();
  consumer.join();
  producer.join();
}

// ---- processes

TYPED_TEST(MessageQueue, GoesBetweenProcesses) {
  const auto there = this->make_numbers(4);
  const auto back = this->make_parcels(4);
  constexpr std::uint64_t count = 500;
  test::ticket<typename TestFixture::parcels> admission(back);
  member<typename TestFixture::numbers> doubler(there, [&](auto& in) {
    const auto out = admission.redeem();
    while (const auto found = in.pop()) out.push(parcel::of(2 * *found, *found % 3, std::string(*found % 700, 'x')));
    out.close();
    return 0;
  });
  std::thread producer([&] {
    for (std::uint64_t each = 0; each < count; ++each) there.push(each);
    there.close();
  });
  for (std::uint64_t each = 0; each < count; ++each) {
    const auto found = back.pop();
    ASSERT_EQ(found->number, 2 * each);
    EXPECT_TRUE(found->is_whole());
    EXPECT_EQ(found->blocks.size(), each % 3);
    EXPECT_EQ(found->text.size(), each % 700);
  }
  EXPECT_EQ(back.pop(), std::nullopt);
  producer.join();
  EXPECT_EQ(doubler.end().code(), 0);
}

TYPED_TEST(MessageQueue, CannotBeMadeInAWorker) {
  const auto queue = this->make_numbers(1);
  member<typename TestFixture::numbers> worker(queue, [](auto&) {
    try {
      const typename TestFixture::numbers another(1);
      return 1;
    } catch (const error& found) {
      return found.code() == errc::invalid_argument ? 0 : 2;
    }
  });
  EXPECT_EQ(worker.end().code(), 0);
}

TYPED_TEST(MessageQueue, AMessageOutlivesItsProducer) {
  const auto queue = this->make_parcels(2);
  member<typename TestFixture::parcels> producer(queue, [](auto& out) {
    out.push(parcel::of(1, 2, std::string(1000, 'x')));
    ::raise(SIGKILL);
    return 0;
  });
  static_cast<void>(producer.end());
  const auto found = queue.pop();
  EXPECT_EQ(found->number, 1U);
  EXPECT_TRUE(found->is_whole());
}

TYPED_TEST(MessageQueue, AMessageOnLeaseOutlivesItsConsumer) {
  const auto queue = this->make_parcels(2);
  queue.push(parcel::of(1, 2, std::string(1000, 'x')));
  queue.push(parcel::of(2));
  member<typename TestFixture::parcels> consumer(queue, [](auto& in) {
    const auto first = in.lease();
    ::raise(SIGKILL);
    return 0;
  });
  static_cast<void>(consumer.end());
  const auto again = queue.pop();
  EXPECT_EQ(again->number, 1U);
  EXPECT_TRUE(again->is_whole());
  EXPECT_EQ(queue.pop()->number, 2U);
}

TYPED_TEST(MessageQueue, AForkedChildLeavesALeaseToItsParentAndCannotUseTheQueue) {
  const auto queue = this->make_parcels(2);
  queue.push(parcel::of(1, 2, std::string(1000, 'x')));
  auto lease = queue.lease();
  const auto child = test::spawn(1, [&](std::size_t) {
    const bool is_refused = refusal_by([&] { lease->ack(); }) && refusal_by([&] { static_cast<void>(queue.pop()); }) &&
                            refusal_by([&] { queue.push(parcel::of(2)); });
    lease.reset();
    return is_refused ? 0 : 1;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  EXPECT_FALSE(queue.try_lease()) << "the child has put it back";
  EXPECT_TRUE((*lease)->is_whole());
  lease->ack();
  EXPECT_EQ(queue.size(), 0U);
}

TYPED_TEST(MessageQueue, AForkedChildThatDropsItLeavesTheMessagesToItsParent) {
  auto queue = std::make_optional(this->make_parcels(2));
  queue->push(parcel::of(1, 2, std::string(1000, 'x')));
  const auto child = test::spawn(1, [&](std::size_t) {
    queue.reset();
    return 0;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  EXPECT_TRUE(queue->pop()->is_whole());
}

// While it is asked for the first time, whoever asks has the lock of the list.
class slow_to_answer final : public keepsake {
public:
  slow_to_answer(std::latch& asked, const std::latch& answers) : asked_(asked), answers_(answers) {}
  [[nodiscard]] bool is_done() noexcept override {
    asked_.count_down();
    answers_.wait();
    return true;
  }

private:
  std::latch& asked_;
  const std::latch& answers_;
};

TYPED_TEST(MessageQueue, AForkedChildDropsItAlthoughAnotherThreadHadTheLock) {
  auto queue = std::make_optional(this->make_numbers(2));
  std::latch asked(1);
  std::latch answers(1);
  this->domain_->keepsakes().add(std::make_unique<slow_to_answer>(asked, answers));
  std::thread other([&] { this->domain_->keepsakes().tidy(); });
  asked.wait();
  const auto child = test::spawn(1, [&](std::size_t) {
    ::alarm(100);  // else it would be there for ever
    queue.reset();
    return 0;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  answers.count_down();
  other.join();
}

TYPED_TEST(MessageQueue, WhatWasTakenOutOfOrderIsNotCounted) {
  if constexpr (std::is_same_v<TypeParam, shared_kind>) {
    const auto queue = this->make_numbers(4);
    queue.push(1);
    queue.push(2);
    auto first = queue.lease();
    auto second = queue.lease();
    second->ack();
    EXPECT_EQ(queue.size(), 2U) << "behind what somebody has";
    first->ack();
    EXPECT_EQ(queue.size(), 0U);
  } else {
    GTEST_SKIP() << "of which one is taken at a time";
  }
}

TYPED_TEST(MessageQueue, WhoeverSleepsGetsWhatADeadConsumerHad) {
  const auto queue = this->make_numbers(2);
  queue.push(1);
  const test::shared<std::atomic<bool>> leased;
  member<typename TestFixture::numbers> consumer(queue, [&](auto& in) {
    const auto first = in.lease();
    *leased = true;
    for (;;) ::pause();
    return 0;
  });
  ASSERT_TRUE(test::eventually([&] { return leased->load(); }));
  queue.close();
  std::thread waiting([&] {
    EXPECT_EQ(queue.pop(), 1U);  // it was not the end yet
    EXPECT_EQ(queue.pop(), std::nullopt);
  });
  consumer.kill();
  waiting.join();
}

TYPED_TEST(MessageQueue, TheEndOfAClosedOneWaitsForTheLeasesOfOthersOnly) {
  const auto queue = this->make_numbers(2);
  queue.push(1);
  queue.close();
  auto mine = queue.lease();
  EXPECT_EQ(queue.pop(), std::nullopt);
  member<typename TestFixture::numbers> other(queue, [&](auto& in) {
    if (in.pop_for(1ms) != std::nullopt || in.try_pop()) return 1;
    return in.pop() == std::nullopt ? 0 : 2;
  });
  mine->ack();
  EXPECT_EQ(other.end().code(), 0);
}

TYPED_TEST(MessageQueue, AWorkersQueueOutlivesTheProgramsObject) {
  const test::shared<std::atomic<std::uint32_t>> dropped;
  const auto use_alone = [&](auto& queue) {
    while (*dropped == 0) futex_wait(futex_address(*dropped), 0, futex_scope::shared);
    queue.push(1);
    return queue.pop() == 1U ? 0 : 1;
  };
  std::unique_ptr<member<typename TestFixture::numbers>> worker;
  {
    const auto queue = this->make_numbers(2);
    worker = std::make_unique<member<typename TestFixture::numbers>>(queue, use_alone);
    ASSERT_TRUE(test::eventually([&] { return this->domain_->keepsakes().size() == 1; }));
  }
  EXPECT_EQ(this->domain_->keepsakes().size(), 1U);
  *dropped = 1;
  futex_wake(futex_address(*dropped), 1, futex_scope::shared);
  EXPECT_EQ(worker->end().code(), 0);
  EXPECT_EQ(this->domain_->keepsakes().size(), 0U);
}

TYPED_TEST(MessageQueue, AForgedMessageIsToldOfAndTheQueueGoesOn) {
  const auto queue = this->make_parcels(2);
  queue.push(parcel::of(1, 0, "some text"));
  auto memory = test::memory_of(queue);
  test::word_at(memory, first_cell + 8) = ~std::uint64_t{0};
  EXPECT_THROW(static_cast<void>(queue.pop()), error);
  memory.reset();
  queue.push(parcel::of(2));
  EXPECT_EQ(queue.pop()->number, 2U);
}

TYPED_TEST(MessageQueue, ACellThatNobodyCanHaveLeftSoIsToldOf) {
  const auto queue = this->make_numbers(3);
  const auto memory = test::memory_of(queue);
  test::word_at(memory, first_cell) = message_word(0, participant_id{9}, message_state::ready).bits();
  const auto is_told = is_refusal(errc::corrupted, "queue of 3 messages", "cell 0 says lap 0, owner 9, state 2");
  EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.try_pop()); }), is_told);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.pop()); }), is_told);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.lease()); }), is_told);
}

TYPED_TEST(MessageQueue, ATailThatWasMovedFarAwayIsToldOf) {
  const auto queue = this->make_numbers(3);
  const auto memory = test::memory_of(queue);
  test::word_at(memory, tail_offset) = ring_position(7000, 1).bits();
  const auto is_told = is_refusal(errc::corrupted, "cell 1 says lap 0", "tail at cell 1 of lap 7000");
  EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.try_push(1)); }), is_told);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.push(1)); }), is_told);
  EXPECT_THAT(refusal_by([&] { static_cast<void>(queue.pop()); }), is_told);
}

TYPED_TEST(MessageQueue, WhoeverSleepsIsToldOfTheDamageThatAnotherFinds) {
  const auto queue = this->make_numbers(2);
  member<typename TestFixture::numbers> other(
      queue, [&](auto& in) { return refusal_by([&] { static_cast<void>(in.pop()); }) ? 0 : 1; });
  ASSERT_TRUE(test::eventually([&] { return test::sleeps_on_futex(other.process().pid(0)); }));
  const auto memory = test::memory_of(queue);
  test::word_at(memory, tail_offset) = ring_position(7000, 0).bits();
  EXPECT_THROW(queue.push(1), error);
  EXPECT_EQ(other.end().code(), 0);
}

TYPED_TEST(MessageQueue, ACellThatNamesNobodyIsMendedWithTheNextDeath) {
  const auto queue = this->make_numbers(2);
  const auto memory = test::memory_of(queue);
  test::word_at(memory, first_cell) = message_word(0, participant_id{60}, message_state::writing).bits();
  EXPECT_TRUE(queue.push(2));
  EXPECT_EQ(queue.pop_for(1ms), std::nullopt);
  member<typename TestFixture::numbers>(queue, [](auto&) { return 0; }).end();
  EXPECT_EQ(queue.pop(), 2U);
}

}  // namespace
}  // namespace muster::message_queue_test
