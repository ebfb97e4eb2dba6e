// SPDX-License-Identifier: BSL-1.0
// A process that has a queue mapped forges what others rely on, while they push and pop: words of cells, sizes of
// messages, names of blocks, head and tail. Whatever happens, every call ends, with a value or with errc::corrupted;
// what somebody holds stays as it is; nobody crashes; and the domain's next queue works. docs/design/integrity.md.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/memory/detail/block_table.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

#include "message_support.hpp"
#include "seed.hpp"

namespace muster::evil_queue_test {
namespace {

using namespace std::chrono_literals;
using test::member;
using test::parcel;

using crowded = shared_queue<parcel>;
using between_two = p2p_queue<parcel>;

constexpr std::size_t capacity = 8;
constexpr std::size_t head_offset = 128;
constexpr std::size_t tail_offset = 256;
constexpr std::size_t first_cell = 512;

// ---- the evil one

enum class forgery : std::uint32_t { words, forms, names, hints, everything };

// The descriptors of the domain, which every participant has mapped.
class stolen_table {
public:
  explicit stolen_table(const domain& of) {
    const auto bytes = file_size_of(of.files().control.get());
    const auto* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, of.files().control.get(), 0);
    if (at == MAP_FAILED) throw std::runtime_error("the domain cannot be mapped");
    header_ = static_cast<const std::uint64_t*>(at);
    const auto page = [](std::size_t size) { return (size + 4095) / 4096 * 4096; };
    const auto blocks_at = 4096 + page(header_[1] * sizeof(participant_entry));
    descriptors_ = reinterpret_cast<const block_descriptor*>(static_cast<const std::byte*>(at) + blocks_at);
  }
  [[nodiscard]] std::uint64_t used() const { return header_[4]; }
  [[nodiscard]] block_ownership read(std::uint64_t index) const {
    return block_ownership::unpack(descriptors_[index].word.load());
  }

private:
  static std::size_t file_size_of(int file) { return static_cast<std::size_t>(::lseek(file, 0, SEEK_END)); }

  const std::uint64_t* header_ = nullptr;  // magic, participants, blocks, extents, blocks ever used
  const block_descriptor* descriptors_ = nullptr;
};

class forger {
public:
  forger(shared_block queue, forgery how, unsigned seed, participant_id dead)
      : how_(how),
        random_(seed),
        memory_(std::move(queue)),
        table_(*domain::of_program()),
        dead_(dead),
        stride_(word(8) >> 32U) {}

  void strike() {
    const auto how = how_ == forgery::everything ? static_cast<forgery>(below(4)) : how_;
    switch (how) {
      case forgery::words: word(some_cell()) = some_word(); break;
      case forgery::forms: word(some_cell() + 8) = some_form(); break;
      case forgery::names: forge_name(); break;
      default: word(below(2) == 0 ? head_offset : tail_offset) = some_position(); break;
    }
  }
  std::chrono::microseconds pause() { return std::chrono::microseconds(20 + below(1000)); }

private:
  std::uint64_t below(std::uint64_t count) { return random_() % count; }
  std::atomic<std::uint64_t>& word(std::size_t offset) { return test::word_at(memory_, offset); }
  std::size_t some_cell() { return first_cell + below(capacity) * stride_; }

  participant_id somebody() {
    const std::array known = {participant_id::none,
                              participant_id::everybody,
                              dead_,
                              domain::of_program()->self(),
                              static_cast<participant_id>(1 + below(8)),
                              static_cast<participant_id>(below(0x10000))};
    return known[below(known.size())];
  }
  std::uint64_t some_lap(std::uint64_t near) { return (below(3) == 0 ? random_() : near + below(5) - 2) & lap_mask; }
  std::uint64_t some_word() {
    const message_word found(word(some_cell()));
    const auto state = static_cast<message_state>(below(8) == 0 ? below(256) : below(4));
    return message_word{some_lap(found.lap()), somebody(), state}.bits();
  }
  std::uint64_t some_position() {
    const ring_position found(word(tail_offset));
    return ring_position{some_lap(found.lap()), below(4) == 0 ? below(1U << 24U) : below(capacity)}.bits();
  }
  // Past the cell, past its block, more blocks than there are, in a block or not.
  std::uint64_t some_form() {
    if (below(4) == 0) return random_();
    return message_form{.frame_bytes = below(2) == 0 ? below(2 * stride_) : below(std::uint64_t{1} << 40U),
                        .attachments = below(2) == 0 ? below(4) : below(0x10000),
                        .in_block = below(2) == 0}
        .pack();
  }
  // Of holds that others have, of blocks, of earlier generations, or of nothing at all.
  std::uint64_t some_name() {
    if (below(8) == 0) return random_();
    const auto descriptor = below(std::max<std::uint64_t>(table_.used(), 1));
    const auto generation = table_.read(descriptor).generation - (below(4) == 0 ? 1U : 0U);
    return block_ref{.descriptor = static_cast<std::uint32_t>(descriptor), .generation = generation, .size_bytes = 0}
        .handle();
  }
  void forge_name() {
    const auto cell = some_cell();
    const auto form = message_form::unpack(word(cell + 8));
    if (form.is_plain() || form.names_offset() + 8 * form.attachments + 24 > stride_) {
      word(cell + 16) = some_name();
    } else {
      const auto which = form.attachments == 0 ? 0 : below(form.attachments);
      word(cell + 16 + (form.in_block ? 0 : form.names_offset() + 8 * which)) = some_name();
    }
  }

  const forgery how_;
  std::mt19937_64 random_;
  const shared_block memory_;
  const stolen_table table_;
  const participant_id dead_;
  const std::size_t stride_;
};

template <class Queue>
int forge(const Queue& queue, forgery how, unsigned seed, participant_id dead) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  forger villain(test::memory_of(queue), how, seed, dead);
  for (;;) {
    villain.strike();
    test::work_for(villain.pause());  // the rate of damage
  }
}

// ---- the others

struct tally {
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> pushed = 0;
  std::atomic<std::uint64_t> whole = 0;
  std::atomic<std::uint64_t> strange = 0;  // what was in a cell or a frame that was forged
  std::atomic<std::uint64_t> told = 0;
  std::atomic<std::uint64_t> unexpected = 0;  // other errors
  std::atomic<std::uint64_t> changed = 0;     // what somebody held
};

void note(tally& seen, const std::exception& failure) {
  const auto* const known = dynamic_cast<const error*>(&failure);
  // A frame that is another message's is told of by whoever decodes it.
  const bool is_told =
      known != nullptr && (known->code() == errc::corrupted || known->code() == errc::not_serializable);
  if (is_told) {
    ++seen.told;
    return;
  }
  ++seen.unexpected;
  std::printf("unexpected: %s\n", failure.what());
  std::fflush(stdout);
}

// Of a holder, who looks from time to time whether it is what it was.
class kept {
public:
  explicit kept(shared_block what) : block_(std::move(what)), was_(text()) {}
  [[nodiscard]] bool is_same() const { return text() == was_; }

private:
  [[nodiscard]] std::string text() const {
    const auto* const at = reinterpret_cast<const char*>(block_.data());
    return {at, ::strnlen(at, std::min<std::size_t>(block_.size(), 100))};
  }
  shared_block block_;
  std::string was_;
};

class keeper {
public:
  explicit keeper(tally& seen) : seen_(seen) {}
  ~keeper() { look(); }
  void keep(shared_block what) {
    all_.emplace_back(std::move(what));
    if (all_.size() > 8) all_.pop_front();
    look();
  }

private:
  void look() {
    for (const auto& each : all_) seen_.changed += each.is_same() ? 0U : 1U;
  }
  tally& seen_;
  std::deque<kept> all_;
};

// Where words are forged a cell may name one who lives, and is waited for like one who is stopped.
deadline patience(forgery how) {
  const bool is_sound = how == forgery::forms || how == forgery::names;
  return is_sound ? deadline::never() : deadline::after(5ms);
}

template <class Queue>
int produce(const Queue& queue, tally& seen, forgery how, std::uint64_t self) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  keeper mine(seen);
  for (std::uint64_t count = 0; !seen.stop; ++count) {
    try {
      auto what = parcel::of(self << 32U | count, count % 4 == 0 ? 1 + count % 3 : 0,
                             std::string(count % 16 == 1 ? 500 : 8, 'x'));
      if (queue.push_until(what, patience(how))) ++seen.pushed;
      if (!what.blocks.empty()) mine.keep(what.blocks.front());
    } catch (const std::exception& failure) {
      note(seen, failure);
    }
  }
  return 0;
}

template <class Queue>
int consume(const Queue& queue, tally& seen, forgery how, bool leases) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  keeper mine(seen);
  const auto take = [&](const parcel& found) {
    ++(found.is_whole() ? seen.whole : seen.strange);
    for (const auto& each : found.blocks) mine.keep(each);
  };
  while (!seen.stop) {
    try {
      if (!leases) {
        if (const auto found = queue.pop_until(patience(how))) take(*found);
      } else if (auto found = queue.lease_until(patience(how))) {
        found->ack();
        take(**found);
      }
    } catch (const std::exception& failure) {
      note(seen, failure);
    }
  }
  return 0;
}

class EvilQueue : public testing::Test {
protected:
  template <class Queue = crowded>
  void torment(forgery how, std::chrono::milliseconds time) {
    const auto seed = test::seed();
    const auto end = deadline::after(time);
    unsigned villains = 0;
    for (; !end.expired(); ++villains) {
      round<Queue>(how, seed + villains);
      expect_next_queue_works<Queue>();
      if (testing::Test::HasFailure()) break;
    }
    const auto ull = [](std::uint64_t number) { return static_cast<unsigned long long>(number); };
    std::printf("%u villains, %llu pushed, %llu whole, %llu strange, %llu told\n", villains, ull(seen_->pushed),
                ull(seen_->whole), ull(seen_->strange), ull(seen_->told));
    EXPECT_GT(seen_->whole, 0U);
    EXPECT_GT(seen_->told, 0U);
    EXPECT_EQ(seen_->unexpected, 0U) << "whoever is told is told that something is corrupted";
    EXPECT_EQ(seen_->changed, 0U) << "what somebody holds is nobody else's";
  }

private:
  // Two of each; between two, one of each, who pops or leases in turn.
  template <class Queue>
  void round(forgery how, unsigned seed) {
    const Queue queue(capacity, {.spin = 5us});
    seen_->stop = false;
    std::vector<std::unique_ptr<member<Queue>>> others;
    const auto add = [&](const std::function<int(Queue&)>& run) {
      others.push_back(std::make_unique<member<Queue>>(queue, run));
    };
    const bool crowds = std::is_same_v<Queue, crowded>;
    for (std::uint64_t self = 1; self <= (crowds ? 2U : 1U); ++self) {
      add([&, self](Queue& mine) { return produce(mine, *seen_, how, self); });
    }
    for (const bool leases : {false, true}) {
      if (crowds || leases == (seed % 2 == 0)) {
        add([&, leases](Queue& mine) { return consume(mine, *seen_, how, leases); });
      }
    }
    const auto dead = domain_->participants().enrol();
    member<Queue> villain(queue, [&](Queue& mine) { return forge(mine, how, seed, dead); });
    domain_->bury(dead);
    test::work_for(50ms);
    villain.kill();
    test::work_for(10ms);
    seen_->stop = true;
    queue.close();
    for (auto& each : others) {
      const auto ended = each->end();
      EXPECT_EQ(ended, exit_status::exited(0)) << "nobody crashes, and every call ends; seed " << seed;
    }
  }

  // Between the program and a fork, with blocks.
  template <class Queue>
  void expect_next_queue_works() {
    const Queue queue(4, {.spin = 0us});
    member<Queue> other(queue, [](Queue& mine) {
      for (std::uint64_t count = 0; count < 50; ++count) mine.push(parcel::of(count, 1));
      return 0;
    });
    for (std::uint64_t count = 0; count < 50; ++count) {
      const auto found = queue.pop();
      ASSERT_TRUE(found && found->is_whole());
      EXPECT_EQ(found->number, count);
    }
    EXPECT_EQ(other.end().code(), 0);
  }

  const std::shared_ptr<domain> domain_ = domain::of_program(
      {.arena_bytes = std::size_t{4} << 30U, .max_participants = 64, .max_blocks = 1U << 18U, .inherited = true});
  const test::shared<tally> seen_;
};

TEST_F(EvilQueue, ForgesWordsOfCells) { torment(forgery::words, 8s); }
TEST_F(EvilQueue, ForgesSizesOfMessages) { torment(forgery::forms, 8s); }
TEST_F(EvilQueue, ForgesNamesOfBlocks) { torment(forgery::names, 8s); }
TEST_F(EvilQueue, MovesHeadAndTail) { torment(forgery::hints, 8s); }
TEST_F(EvilQueue, ForgesAllOfIt) { torment(forgery::everything, 10s); }
TEST_F(EvilQueue, ForgesAllOfItBetweenTwo) { torment<between_two>(forgery::everything, 10s); }

}  // namespace
}  // namespace muster::evil_queue_test
