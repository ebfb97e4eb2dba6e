// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to a long message whose sender leaves before it is received: the sender makes a ring,
// tells of the message, hands both over, leaves and ends; the receiver takes over the ring, copies the message and
// leaves. Either may be killed before any operation on shared memory, and the host drops what the dead held before it
// says that they are dead. The steps of mailbox.cpp, mailbox_leave.cpp, mailbox_receive.cpp and of the arena are
// repeated here; how holds are counted is share_model_test's affair. Memory is sequentially consistent. Sleeping is
// left out: group_model_test.cpp has it.
#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace muster::leaving_model_test {
namespace {

enum class mutation : std::uint8_t {
  none,
  ring,            // it is not handed over
  taken_link,      // it is not where the receiver has taken the link
  message,         // it is not handed over
  carrier,         // what is handed over goes with nothing
  announcement,    // the receiver does not say that it reads
  look_at_answer,  // the sender does not look whether it is read
  second_look      // at the ring, when the receiver has found that the sender has left
};

struct scenario {
  unsigned deaths = 0;
  bool is_alone = false;          // the sender lets go of the tensor; else it changes it once the message has ended
  bool is_wanted = true;          // else the receiver leaves without a look at it
  bool takes_ring_first = false;  // the receiver, before anything is told of
  mutation without = mutation::none;
};

// Of a hold: nobody has it; it is in a message, in the sender's name or everybody's; the receiver has it.
enum class hold : std::uint8_t { none, sent, everybodys, received };
enum class link : std::uint8_t { none, named, taken };
enum class answer : std::uint8_t { none, reading, given };

enum class send_pc : std::uint8_t {
  name_ring,
  tell,
  look_who_is_gone,
  look_at_link,
  entrust_ring,
  copy,
  entrust_message,
  name_message,
  look_at_answer,
  await_reader,
  take_back_message,
  end_message,
  leave,
  look_whether_left,
  take_back_link,
  take_back_ring,
  drop_ring,
  drop_group,
  finished
};
enum class receive_pc : std::uint8_t {
  begin,
  look_at_link,
  take_link,
  take_ring,
  look_at_ring,
  look_whether_left,
  look_at_link_again,
  announce,
  look_where,
  keep,
  read,
  end_read,
  unkeep,
  read_handed_over,
  respond,
  look_what_was_handed_over,
  take_out,
  drop_message,
  leave,
  look_at_link_last,
  take_link_last,
  take_ring_last,
  drop_ring,
  drop_group,
  finished
};

struct world {
  // Shared.
  link to_receiver = link::none;
  hold ring = hold::none;     // of the link
  hold message = hold::none;  // of what is handed over
  answer response = answer::none;
  std::uint8_t ring_of_sender = 1;
  std::uint8_t group_of_sender = 1;
  std::uint8_t group_of_receiver = 1;
  std::uint8_t tensor_of_sender = 1;
  std::uint8_t tensor_of_receiver = 0;
  std::uint8_t is_told = 0;
  std::uint8_t is_named = 0;  // where it lies now
  std::uint8_t has_left = 0;  // the sender
  std::uint8_t has_receiver_left = 0;
  // The processes.
  send_pc sends = send_pc::name_ring;
  receive_pc receives = receive_pc::begin;
  std::uint8_t sender_dead = 0;  // 1: killed or ended; 2: what it held is dropped; 3: that is known
  std::uint8_t receiver_dead = 0;
  std::uint8_t was_sender_killed = 0;
  std::uint8_t is_again = 0;  // the receiver's last look
  std::uint8_t has_message = 0;
  std::uint8_t is_changed = 0;  // the tensor, by its owner
  std::uint8_t is_torn = 0;
  std::uint8_t is_lost = 0;  // what the receiver was told
  std::uint8_t deaths_left = 0;
};
static_assert(std::has_unique_object_representations_v<world>);

bool is_group_there(const world& in) { return in.group_of_sender != 0 || in.group_of_receiver != 0; }
bool is_ring_there(const world& in) { return in.ring_of_sender != 0 || in.ring != hold::none; }
bool is_tensor_there(const world& in, const scenario& what) {
  const bool is_handed_over = what.is_alone && in.message != hold::none;
  return in.tensor_of_sender != 0 || in.tensor_of_receiver != 0 || is_handed_over;
}

// arena::drop_carried, in one step with what freed the carrier
void drop_carried(world& in, const scenario& what) {
  if (what.without == mutation::carrier) return;
  if (in.ring == hold::everybodys && !is_group_there(in)) in.ring = hold::none;
  if (in.message == hold::everybodys && !is_ring_there(in)) in.message = hold::none;
}

// arena::receive: false where there is nothing to be had
bool receive(hold& which) {
  if (which != hold::sent && which != hold::everybodys) return false;
  which = hold::received;
  return true;
}

class stepper {
public:
  stepper(const scenario& what, world& in) : what_(what), in_(in) {}

  void send() {
    using enum send_pc;
    switch (in_.sends) {
      case name_ring:
        in_.ring = hold::sent;
        in_.to_receiver = link::named;
        return go(tell);
      case tell: in_.is_told = 1; return go(look_who_is_gone);
      case look_who_is_gone:
        if (is_receiver_gone()) return go(end_message);
        return go(what_.without == mutation::ring ? copy : look_at_link);
      case look_at_link:  // as one may think that it has to
        return go(what_.without == mutation::taken_link && in_.to_receiver == link::taken ? copy : entrust_ring);
      case entrust_ring:
        if (in_.ring == hold::sent) in_.ring = hold::everybodys;
        return go(copy);
      case copy:
        if (what_.without == mutation::message) return go(end_message);
        in_.message = hold::sent;
        return go(entrust_message);
      case entrust_message:
        if (in_.message == hold::sent) in_.message = hold::everybodys;
        return go(name_message);
      case name_message: in_.is_named = 1; return go(look_at_answer);
      default: return end_sending();
    }
  }

  // Whether a step is anything but waiting.
  [[nodiscard]] bool can_send() const {
    if (in_.sends == send_pc::finished) return false;
    return in_.sends != send_pc::await_reader || in_.response != answer::reading || is_receiver_gone();
  }

  void take() {
    using enum receive_pc;
    switch (in_.receives) {
      case begin: return go(what_.is_wanted || what_.takes_ring_first ? look_at_link : receive_pc::leave);
      case look_at_link:
      case look_at_link_again:
        if (in_.to_receiver == link::named) return go(take_link);
        return go(in_.is_again != 0 ? tell_lost() : look_whether_left);
      case take_link: in_.to_receiver = link::taken; return go(take_ring);
      case take_ring: return go(receive(in_.ring) ? look_at_ring : look_whether_left);
      case look_at_ring:
        if (!what_.is_wanted) return go(receive_pc::leave);
        if (in_.is_told != 0) return go(what_.without == mutation::announcement ? look_where : announce);
        return go(in_.is_again != 0 ? tell_lost() : look_whether_left);
      case look_whether_left: return look_whether_sender_left();
      default: return copy_message();
    }
  }

  // It sleeps until something is different.
  [[nodiscard]] bool can_take() const {
    if (in_.receives == receive_pc::finished) return false;
    if (in_.receives != receive_pc::look_whether_left || in_.has_left != 0 || in_.sender_dead == 3) return true;
    return is_something_new();
  }

private:
  void go(send_pc next) { in_.sends = next; }
  void go(receive_pc next) { in_.receives = next; }
  [[nodiscard]] bool is_receiver_gone() const { return in_.has_receiver_left != 0 || in_.receiver_dead == 3; }
  [[nodiscard]] bool is_something_new() const {
    return in_.to_receiver == link::named || (in_.ring == hold::received && in_.is_told != 0);
  }

  void end_sending() {
    using enum send_pc;
    switch (in_.sends) {
      case look_at_answer:
        if (in_.response == answer::given) return go(take_back_message);
        if (what_.is_alone || what_.without == mutation::look_at_answer) return go(end_message);
        return go(in_.response == answer::reading ? await_reader : end_message);
      case await_reader:
        if (is_receiver_gone() || in_.response != answer::reading) go(end_message);
        return;
      case take_back_message:
        if (std::exchange(in_.is_named, std::uint8_t{0}) != 0) in_.message = hold::none;
        return go(end_message);
      case end_message:
        in_.tensor_of_sender = what_.is_alone ? 0 : in_.tensor_of_sender;
        in_.is_changed = what_.is_alone ? 0 : 1;
        return go(send_pc::leave);
      case send_pc::leave: in_.has_left = 1; return go(send_pc::look_whether_left);
      case send_pc::look_whether_left: return go(is_receiver_gone() ? take_back_link : drop_ring);
      case take_back_link: {
        const bool is_taken = in_.to_receiver == link::taken;
        in_.to_receiver = link::taken;
        return go(is_taken && in_.receiver_dead != 3 ? drop_ring : take_back_ring);
      }
      case take_back_ring:
        if (in_.ring == hold::sent || in_.ring == hold::everybodys) in_.ring = hold::none;
        return go(drop_ring);
      case drop_ring:
        in_.ring_of_sender = 0;
        drop_carried(in_, what_);
        return go(drop_group);
      default:
        in_.group_of_sender = 0;
        drop_carried(in_, what_);
        return go(finished);
    }
  }

  // It looks at the ring once more when it has found that nothing else can come.
  void look_whether_sender_left() {
    const bool ends = in_.has_left != 0 || in_.sender_dead == 3;
    if (!ends || what_.without != mutation::second_look) {
      in_.is_again = ends ? 1 : 0;
      return go(in_.ring == hold::received ? receive_pc::look_at_ring : receive_pc::look_at_link_again);
    }
    go(tell_lost());
  }
  receive_pc tell_lost() {
    in_.is_lost = 1;
    return receive_pc::leave;
  }

  void copy_message() {
    using enum receive_pc;
    switch (in_.receives) {
      case announce: in_.response = answer::reading; return go(look_where);
      case look_where: return go(in_.is_named != 0 ? read_handed_over : keep);
      case keep:
        if (!is_tensor_there(in_, what_)) return go(tell_lost());
        in_.tensor_of_receiver = 1;
        return go(receive_pc::read);
      case receive_pc::read:
      case end_read: in_.is_torn |= in_.is_changed; return go(in_.receives == receive_pc::read ? end_read : unkeep);
      case unkeep: in_.tensor_of_receiver = 0; return got();
      case read_handed_over:
        if (in_.message != hold::sent && in_.message != hold::everybodys) return go(tell_lost());
        return got();
      case respond: in_.response = answer::given; return go(look_what_was_handed_over);
      case look_what_was_handed_over: return go(in_.is_named != 0 ? take_out : receive_pc::leave);
      case take_out: return go(std::exchange(in_.is_named, std::uint8_t{0}) != 0 ? drop_message : receive_pc::leave);
      case drop_message: in_.message = hold::none; return go(receive_pc::leave);
      default: return end_receiving();
    }
  }
  void got() {
    in_.has_message = 1;
    go(receive_pc::respond);
  }

  void end_receiving() {
    using enum receive_pc;
    switch (in_.receives) {
      case receive_pc::leave:
        in_.has_receiver_left = 1;
        return go(in_.ring == hold::received ? receive_pc::drop_ring : look_at_link_last);
      case look_at_link_last: return go(in_.to_receiver == link::named ? take_link_last : receive_pc::drop_group);
      case take_link_last: {
        const bool is_it = in_.to_receiver == link::named;
        if (is_it) in_.to_receiver = link::taken;
        return go(is_it ? take_ring_last : receive_pc::drop_group);
      }
      case take_ring_last: return go(receive(in_.ring) ? receive_pc::drop_ring : receive_pc::drop_group);
      case receive_pc::drop_ring:
        in_.ring = hold::none;
        drop_carried(in_, what_);
        return go(receive_pc::drop_group);
      default:
        in_.group_of_receiver = 0;
        drop_carried(in_, what_);
        return go(finished);
    }
  }

  const scenario& what_;
  world& in_;
};

class exploration {
public:
  explicit exploration(const scenario& what) : what_(what) {
    world first;
    first.deaths_left = static_cast<std::uint8_t>(what.deaths);
    open_.push_back(first);
  }

  std::string run() {
    while (!open_.empty()) {
      const auto now = open_.back();
      open_.pop_back();
      const auto hash = XXH3_128bits(&now, sizeof now);
      if (!seen_.insert({hash.low64, hash.high64}).second) continue;
      if (now.is_torn != 0) return "the receiver read what the sender's program had changed";
      if (!follow(now)) {
        if (auto found = judge(now); !found.empty()) return found;
      }
    }
    return {};
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

private:
  struct hash_of {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& of) const { return of.first; }
  };

  // False when nobody can move; a death is no move.
  bool follow(const world& now) {
    const bool sent = follow_sender(now);
    return follow_receiver(now) || sent;
  }

  // One that has left ends, which is like a death that nobody needs to be told of.
  bool follow_sender(const world& now) {
    auto next = now;
    if (now.sender_dead != 0) {
      if (now.sender_dead == 3) return false;
      bury_sender(next);
      open_.push_back(next);
      return true;
    }
    if (now.deaths_left > 0 && now.sends != send_pc::finished) kill_sender(now);
    if (now.sends == send_pc::finished) {
      next.sender_dead = 1;
    } else {
      stepper can(what_, next);
      if (!can.can_send()) return false;
      can.send();
    }
    open_.push_back(next);
    return true;
  }
  void kill_sender(const world& now) {
    auto died = now;
    --died.deaths_left;
    died.sender_dead = 1;
    died.was_sender_killed = 1;
    open_.push_back(died);
  }
  void bury_sender(world& next) {
    if (++next.sender_dead == 3) return;
    next.ring_of_sender = next.group_of_sender = next.tensor_of_sender = 0;
    if (next.ring == hold::sent) next.ring = hold::none;
    if (next.message == hold::sent) next.message = hold::none;
    drop_carried(next, what_);
  }

  bool follow_receiver(const world& now) {
    auto next = now;
    if (now.receiver_dead != 0) {
      if (now.receiver_dead == 3) return false;
      bury_receiver(next);
      open_.push_back(next);
      return true;
    }
    if (now.deaths_left > 0 && now.receives != receive_pc::finished) {
      auto died = now;
      --died.deaths_left;
      died.receiver_dead = 1;
      open_.push_back(died);
    }
    stepper can(what_, next);
    if (!can.can_take()) return false;
    can.take();
    open_.push_back(next);
    return true;
  }
  void bury_receiver(world& next) {
    if (++next.receiver_dead == 3) return;
    next.group_of_receiver = next.tensor_of_receiver = 0;
    if (next.ring == hold::received) next.ring = hold::none;
    drop_carried(next, what_);
  }

  [[nodiscard]] std::string judge(const world& now) const {
    const bool is_over = (now.sender_dead == 3) && (now.receives == receive_pc::finished || now.receiver_dead == 3);
    if (!is_over) return "somebody waits for ever";
    const bool should_have_it = what_.is_wanted && now.receiver_dead == 0 && now.was_sender_killed == 0;
    if (should_have_it && (now.has_message == 0 || now.is_lost != 0)) return "what was sent is lost";
    if (is_group_there(now) || is_ring_there(now) || now.message != hold::none || is_tensor_there(now, what_)) {
      return "memory is lost";
    }
    return {};
  }

  const scenario what_;
  std::vector<world> open_;
  std::unordered_set<std::pair<std::uint64_t, std::uint64_t>, hash_of> seen_;
};

std::string explore(const scenario& what) {
  exploration all(what);
  auto found = all.run();
  std::printf("%u deaths, the tensor %s, the message %s: %zu states: %s\n", what.deaths,
              what.is_alone ? "only the message's" : "changed then", what.is_wanted ? "wanted" : "not wanted",
              all.states(), found.empty() ? "right" : found.c_str());
  return found;
}

TEST(LeavingModel, WhatWasSentIsReceivedWholeAndNothingIsLost) {
  for (const unsigned deaths : {0U, 1U, 2U}) {
    for (const bool is_alone : {false, true}) EXPECT_EQ(explore({.deaths = deaths, .is_alone = is_alone}), "");
  }
}

TEST(LeavingModel, NothingIsLostOfWhatNobodyWants) {
  for (const unsigned deaths : {0U, 1U, 2U}) {
    for (const bool takes_ring : {false, true}) {
      EXPECT_EQ(explore({.deaths = deaths, .is_wanted = false, .takes_ring_first = takes_ring}), "");
    }
  }
}

TEST(LeavingModelMutation, WhateverIsLeftOutIsMissed) {
  EXPECT_NE(explore({.deaths = 0, .without = mutation::ring}), "");
  EXPECT_NE(explore({.deaths = 0, .without = mutation::taken_link}), "");
  EXPECT_NE(explore({.deaths = 0, .without = mutation::message}), "");
  EXPECT_NE(explore({.deaths = 0, .is_alone = true, .without = mutation::message}), "");
  EXPECT_NE(explore({.deaths = 1, .without = mutation::carrier}), "");
  EXPECT_NE(explore({.deaths = 0, .without = mutation::announcement}), "");
  EXPECT_NE(explore({.deaths = 0, .without = mutation::look_at_answer}), "");
  EXPECT_NE(explore({.deaths = 0, .without = mutation::second_look}), "");
}

}  // namespace
}  // namespace muster::leaving_model_test
