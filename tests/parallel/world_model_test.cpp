// SPDX-License-Identifier: BSL-1.0
// Everything that can happen to a world of two or three ranks, one of them the caller's, in some calls that update a
// variable of which every rank has a replica. Any worker may be killed before any step, and is buried and replaced; any
// rank's function may throw, or not come back; calls may be given up. What the caller decides is decided by
// call_progress itself; what ranks and caller do between is repeated here. Memory is sequentially consistent.
//
// Why this is the same: every operation of world_member and world_core on memory that others see is a step here, in the
// same order. A wait is a step that can be made as soon as what is waited for is there: how one sleeps and is woken is
// wait_protocol's, of which there are models elsewhere. What a rank offers the others, and what it replies, is in
// memory of its own, which anything may be written to after its burial. Each rank makes a part of the variable, of the
// same part of the old value and of what all have offered, and writes it into every replica, one after the other.
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/parallel/detail/call_progress.hpp>
#include <muster/parallel/detail/world_words.hpp>

namespace muster::world_model_test {
namespace {

using detail::answer_word;
using detail::call_progress;
using detail::rank_phase;
using detail::world_order;

constexpr std::size_t most_ranks = 3;
constexpr std::uint8_t garbage = 0xee;

// What is left out or done otherwise, to see that it is missed.
enum class mutation : std::uint8_t {
  none,
  second_look,         // at who has died, after the outputs were read
  quiet_after_abort,   // the next call begins at once
  death_after_done,    // counts too
  outputs_first,       // before the variable changes
  deaths_are_awaited,  // of those who were killed
  burial_order,        // a death is known before the memory is given away
  second_copy,         // of the variable
  told_when_done,      // ranks are taken to know what was written for them, done or not
  replaced_knows_nothing,
  await_all_computed,  // before what they offer is read
  epoch_of_answer,     // any answer is one to this call
  epoch_of_joining,    // who takes a place thinks that there was no call yet
  abort_is_told,
  abort_in_exchange,  // is looked for while others are awaited
  abort_before_run,   // is answered
  failure_ends_wait,  // of the caller, while others have not answered
  deaths_in_wait,     // of the caller for answers
  only_news_in_wait,  // also what the caller knows already ends a wait
  caller_is_hopeless  // in his own share, when another has failed
};

struct scenario {
  std::size_t ranks = 2;
  bool caller_computes = true;
  std::uint8_t calls = 3;
  std::uint8_t deaths = 0;
  std::uint8_t failures = 0;  // by throwing
  std::uint8_t hangs = 0;     // in the function
  bool is_given_up = false;   // calls may be too long, and ranks too late when they are aborted
  bool is_refused = false;    // outputs may not go together
  mutation without = mutation::none;

  [[nodiscard]] bool is_without(mutation what) const { return without == what; }
};

enum class pc : std::uint8_t {
  // of a rank
  none,
  join,
  answer_ready,
  serve,
  read_arguments,
  compute,
  offer,
  answer_computed,
  await_others,
  read_others,
  read_old,
  write,
  look_for_abort,
  write_reply,
  answer_done,
  answer_failed,
  answer_dropped,
  hanging,
  left,
  // of the caller
  replace,
  await_ranks,
  tell,
  order_run,
  own_share,
  look_at_answer,
  look_at_life,
  decide,
  order_abort,
  wait,
  read_replies,
  flip,
  end,
  finished
};

enum class life : std::uint8_t { lives, killed, half_buried, buried };

struct rank_state {
  pc now = pc::none;
  life alive = life::lives;
  std::uint8_t doomed = 0;     // a kill is under way
  std::uint8_t asked_for = 0;  // a process in its place
  std::uint8_t epoch = 0;
  std::uint8_t whom = 0;
  std::uint8_t is_right = 0;  // what all have offered
  std::uint8_t old = 0;       // the part's value
  std::uint8_t live = 0;
  std::uint8_t knows = 0;  // the function
  // In the world's memory.
  std::uint8_t answer_epoch = 0;
  rank_phase answer = rank_phase::absent;
  std::uint8_t news = 0;
  // In its own: of which call they are.
  std::uint8_t offered = 0;
  std::uint8_t reply = 0;
};

struct caller_state {
  pc now = pc::replace;
  std::uint8_t whom = 0;
  std::uint8_t again = 0;  // after the outputs were read
  std::uint8_t epoch = 0;
  std::uint8_t live = 0;
  std::uint8_t version = 0;  // calls that have happened, as far as the user knows
  std::uint8_t in_call = 0;
  std::uint8_t gave_up = 0;
  std::uint8_t aborted = 0;
  std::uint8_t killed = 0;
  std::uint8_t outputs_are_right = 1;
  std::array<std::uint8_t, most_ranks> told{};
  // What progress was told.
  std::array<rank_phase, most_ranks> answers{};
  std::array<std::uint8_t, most_ranks> died{};
};

enum class wrong : std::uint8_t {
  nothing,
  live_write,
  late_write,
  other_arguments,
  unknown_function,
  wrong_outputs,
  wrong_value,
};

struct state {
  std::array<rank_state, most_ranks> ranks{};
  caller_state caller;
  std::uint8_t command_epoch = 0;
  world_order command = world_order::none;
  std::uint8_t arguments_epoch = 0;
  std::uint8_t arguments_live = 0;
  // By replica, copy, part.
  std::array<std::array<std::array<std::uint8_t, most_ranks>, 2>, most_ranks> value{};
  std::uint8_t deaths_left = 0;
  std::uint8_t failures_left = 0;
  std::uint8_t hangs_left = 0;
  wrong what = wrong::nothing;
};
static_assert(std::has_unique_object_representations_v<state>);

using states = std::vector<state>;

// Whether a death is known. A rank's number has another occupant from before its memory is given away.
bool is_known_dead(const scenario& what, const rank_state& each) {
  return each.alive >= (what.is_without(mutation::burial_order) ? life::buried : life::half_buried);
}

/// The steps of one rank.
class rank_stepper {
public:
  rank_stepper(const scenario& what, const state& in, std::size_t self) : what_(what), in_(in), self_(self) {}

  /// Appends what may come of the next one; nothing, if it waits.
  void follow(states& made) const {
    auto next = in_;
    auto& me = next.ranks[self_];
    switch (me.now) {
      case pc::join:
        me.epoch = what_.is_without(mutation::epoch_of_joining) ? 0 : in_.command_epoch;
        me.now = pc::answer_ready;
        break;
      case pc::answer_ready: say(next, rank_phase::ready, pc::serve); break;
      case pc::serve:
        if (!serve(next)) return;
        break;
      case pc::read_arguments: read_arguments(next); break;
      case pc::compute: compute(made); return;
      case pc::offer:
        me.offered = me.epoch;
        me.now = pc::answer_computed;
        break;
      case pc::answer_computed: say(next, rank_phase::computed, pc::await_others); break;
      case pc::await_others: await_others(made); return;
      case pc::read_others:
        if (in_.ranks[me.whom].offered != me.epoch) me.is_right = 0;
        if (++me.whom == what_.ranks) go_to(me, pc::read_old);
        break;
      case pc::read_old:
        me.old = in_.value[0][me.live][self_];
        me.now = pc::write;
        break;
      case pc::write: write(next); break;
      case pc::look_for_abort: me.now = is_aborted() ? pc::answer_dropped : pc::write_reply; break;
      case pc::write_reply:
        me.reply = me.epoch;
        me.now = pc::answer_done;
        break;
      case pc::answer_done: say(next, rank_phase::done, pc::serve); break;
      case pc::answer_failed: say(next, rank_phase::failed, pc::serve); break;
      case pc::answer_dropped: say(next, rank_phase::dropped, pc::serve); break;
      default: return;
    }
    made.push_back(next);
  }

private:
  [[nodiscard]] bool is_own() const { return what_.caller_computes && self_ == 0; }
  [[nodiscard]] const rank_state& me() const { return in_.ranks[self_]; }
  [[nodiscard]] bool is_aborted() const { return in_.command == world_order::abort && in_.command_epoch == me().epoch; }
  static void go_to(rank_state& me, pc next) {
    me.now = next;
    me.whom = 0;
  }

  void say(state& next, rank_phase phase, pc then) const {
    auto& me = next.ranks[self_];
    me.answer = phase;
    me.answer_epoch = me.epoch;
    go_to(me, then);
    if (then != pc::serve) return;
    me.is_right = me.old = me.live = 0;
  }

  bool serve(state& next) const {
    auto& me = next.ranks[self_];
    if (in_.command == world_order::close) {
      me.now = pc::left;
      return true;
    }
    if (in_.command_epoch == me.epoch) return false;
    me.epoch = in_.command_epoch;
    me.now = in_.command == world_order::run ? pc::read_arguments : pc::answer_dropped;
    if (me.now == pc::answer_dropped && what_.is_without(mutation::abort_before_run)) me.now = pc::serve;
    return true;
  }

  void read_arguments(state& next) const {
    auto& me = next.ranks[self_];
    if (in_.arguments_epoch != me.epoch) next.what = wrong::other_arguments;
    if (me.news != 0) me.knows = 1;
    if (me.knows == 0) next.what = wrong::unknown_function;
    me.live = in_.arguments_live;
    me.now = pc::compute;
  }

  void compute(states& made) const {
    const auto go = [&](pc where, std::uint8_t state::* budget) {
      auto next = in_;
      next.ranks[self_].now = where;
      if (budget != nullptr) --(next.*budget);
      made.push_back(next);
    };
    go(pc::offer, nullptr);
    if (in_.failures_left > 0) go(pc::answer_failed, &state::failures_left);
    if (in_.hangs_left > 0 && !is_own()) go(pc::hanging, &state::hangs_left);
  }

  void await_others(states& made) const {
    const auto& other = in_.ranks[me().whom];
    const bool has_computed =
        other.answer_epoch == me().epoch && (other.answer == rank_phase::computed || other.answer == rank_phase::done);
    if (has_computed || what_.is_without(mutation::await_all_computed)) {
      auto next = in_;
      auto& mine = next.ranks[self_];
      mine.is_right = 1;
      if (++mine.whom == what_.ranks) go_to(mine, pc::read_others);
      made.push_back(next);
    }
    const bool is_told = in_.command != world_order::run || in_.command_epoch != me().epoch;
    const bool is_dropped = is_told && !what_.is_without(mutation::abort_in_exchange);
    if (!is_dropped && !(is_own() && (what_.is_given_up || is_hopeless()))) return;
    made.push_back(in_);
    go_to(made.back().ranks[self_], pc::answer_dropped);
  }

  // For the caller's own share.
  [[nodiscard]] bool is_hopeless() const {
    if (what_.is_without(mutation::caller_is_hopeless)) return false;
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      const auto& each = in_.ranks[rank];
      const bool is_over = each.answer == rank_phase::failed || each.answer == rank_phase::dropped;
      if (is_known_dead(what_, each) || (is_over && each.answer_epoch == in_.caller.epoch)) return true;
    }
    return false;
  }

  void write(state& next) const {
    auto& me = next.ranks[self_];
    const std::uint8_t copy = what_.is_without(mutation::second_copy) ? me.live : 1 - me.live;
    if (copy == in_.caller.live) next.what = wrong::live_write;
    if (in_.caller.in_call == 0 || in_.caller.epoch != me.epoch) next.what = wrong::late_write;
    next.value[me.whom][copy][self_] = me.is_right != 0 ? static_cast<std::uint8_t>(me.old + 1) : garbage;
    if (++me.whom == what_.ranks) go_to(me, pc::look_for_abort);
  }

  const scenario& what_;
  const state& in_;
  const std::size_t self_;
};

/// The steps of the caller.
class caller_stepper {
public:
  caller_stepper(const scenario& what, const state& in) : what_(what), in_(in) {}

  void follow(states& made) const {
    auto next = in_;
    auto& me = next.caller;
    switch (me.now) {
      case pc::replace: replace(next); break;
      case pc::await_ranks:
        if (!await_ranks(next)) return;
        break;
      case pc::tell: tell(next); break;
      case pc::order_run: order_run(next); break;
      case pc::own_share: share(made); return;
      case pc::look_at_answer: look_at_answer(next); break;
      case pc::look_at_life: look_at_life(next); break;
      case pc::decide: decide(next); break;
      case pc::order_abort: order_abort(next); break;
      case pc::wait: wait(made); return;
      case pc::read_replies: read_replies(made); return;
      case pc::flip:
        flip(next);
        if (me.outputs_are_right == 0) next.what = wrong::wrong_outputs;
        ++me.version;
        me.now = pc::end;
        break;
      case pc::end: end(next); break;
      default: return;
    }
    made.push_back(next);
  }

private:
  [[nodiscard]] bool is_worker(std::size_t rank) const { return rank != 0 || !what_.caller_computes; }
  [[nodiscard]] bool is_gone(std::size_t rank) const {
    return is_worker(rank) && is_known_dead(what_, in_.ranks[rank]);
  }

  void ask_for(state& next, std::size_t rank) const {
    auto& each = next.ranks[rank];
    each.answer = rank_phase::absent;
    each.answer_epoch = 0;
    each.news = 0;
    each.asked_for = 1;
    if (!what_.is_without(mutation::replaced_knows_nothing)) next.caller.told[rank] = 0;
  }

  void replace(state& next) const {
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      if (is_gone(rank)) ask_for(next, rank);
    }
    next.caller.now = pc::await_ranks;
  }

  // Who has died while he came is asked for again.
  bool await_ranks(state& next) const {
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      if (in_.ranks[rank].answer != rank_phase::absent) continue;
      if (in_.ranks[rank].alive != life::buried || in_.ranks[rank].asked_for != 0) return false;
      ask_for(next, rank);
      return true;
    }
    next.caller.now = pc::tell;
    return true;
  }

  void tell(state& next) const {
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      auto& told = next.caller.told[rank];
      next.ranks[rank].news = told == 0 ? 1 : 0;
      if (!is_worker(rank) || what_.is_without(mutation::told_when_done)) told = 1;
    }
    next.arguments_epoch = static_cast<std::uint8_t>(in_.caller.epoch + 1);
    next.arguments_live = in_.caller.live;
    next.caller.now = pc::order_run;
  }

  void order_run(state& next) const {
    auto& me = next.caller;
    ++me.epoch;
    me.in_call = 1;
    me.answers.fill(rank_phase::ready);
    me.outputs_are_right = 1;
    next.command_epoch = me.epoch;
    next.command = world_order::run;
    me.now = pc::look_at_answer;
    if (!what_.caller_computes) return;
    me.now = pc::own_share;
    next.ranks[0].epoch = me.epoch;
    next.ranks[0].now = pc::read_arguments;
  }

  void share(states& made) const {
    rank_stepper(what_, in_, 0).follow(made);
    for (auto& each : made) {
      if (each.ranks[0].now == pc::serve) each.caller.now = pc::look_at_answer;
    }
  }

  [[nodiscard]] answer_word answer_of(std::size_t rank) const {
    const auto& found = in_.ranks[rank];
    const auto epoch = what_.is_without(mutation::epoch_of_answer) ? in_.caller.epoch : found.answer_epoch;
    return {.epoch = epoch, .what = found.answer};
  }

  void look_at_answer(state& next) const {
    auto& me = next.caller;
    const auto found = answer_of(me.whom);
    if (found.epoch == me.epoch) me.answers[me.whom] = found.what;
    me.now = pc::look_at_life;
  }

  void look_at_life(state& next) const {
    auto& me = next.caller;
    const bool is_ignored = what_.is_without(mutation::death_after_done) && me.answers[me.whom] == rank_phase::done;
    if (is_gone(me.whom) && !is_ignored) me.died[me.whom] = 1;
    const bool is_last = static_cast<std::size_t>(me.whom) + 1 == what_.ranks;
    me.whom = is_last ? 0 : static_cast<std::uint8_t>(me.whom + 1);
    me.now = is_last ? pc::decide : pc::look_at_answer;
  }

  // As it stands after all that it was told.
  [[nodiscard]] call_progress& progress() const {
    static std::array all = {call_progress(1), call_progress(2), call_progress(3)};
    auto& made = all[what_.ranks - 1];
    const auto& me = in_.caller;
    made.begin(me.epoch);
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      made.answered(rank, {.epoch = me.epoch, .what = me.answers[rank]});
      if (me.died[rank] != 0) made.died(rank);
    }
    if (me.gave_up != 0) made.give_up();
    if (me.aborted != 0) static_cast<void>(made.decide());
    return made;
  }

  void decide(state& next) const {
    auto& me = next.caller;
    switch (progress().decide()) {
      case call_progress::next::wait: me.now = pc::wait; break;
      case call_progress::next::abort: me.now = pc::order_abort; break;
      case call_progress::next::settled: me.now = pc::end; break;
      case call_progress::next::commit:
        if (what_.is_without(mutation::outputs_first) && me.again == 0) flip(next);
        me.now = me.again != 0 ? pc::flip : pc::read_replies;
        break;
    }
  }

  void flip(state& next) const {
    if (what_.is_without(mutation::outputs_first) && in_.caller.now == pc::flip) return;
    next.caller.live = 1 - in_.caller.live;
  }

  void order_abort(state& next) const {
    auto& me = next.caller;
    me.aborted = 1;
    if (!what_.is_without(mutation::abort_is_told)) next.command = world_order::abort;
    me.now = what_.is_without(mutation::quiet_after_abort) ? pc::end : pc::look_at_answer;
  }

  [[nodiscard]] bool have_answered() const {
    const auto& all = progress();
    bool is_any_left = false;
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      if (!all.is_awaited(rank)) continue;
      const auto found = answer_of(rank);
      const bool has_answered = found.epoch == in_.caller.epoch && detail::is_quiet(found.what);
      if (has_answered && found.what == rank_phase::failed && !what_.is_without(mutation::failure_ends_wait))
        return true;
      is_any_left |= !has_answered;
    }
    return !is_any_left;
  }

  [[nodiscard]] bool has_somebody_died() const {
    const bool knows_enough = what_.is_without(mutation::only_news_in_wait);
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      if (is_gone(rank) && (knows_enough || in_.caller.died[rank] == 0)) return true;
    }
    return false;
  }

  void wait(states& made) const {
    const bool look_at_deaths = !what_.is_without(mutation::deaths_in_wait);
    if (have_answered() || (look_at_deaths && has_somebody_died())) {
      made.push_back(in_);
      made.back().caller.now = pc::look_at_answer;
      return;
    }
    if (!what_.is_given_up || in_.caller.killed != 0) return;
    made.push_back(in_);
    lose_patience(made.back());
  }

  void lose_patience(state& next) const {
    auto& me = next.caller;
    me.now = pc::look_at_answer;
    if (me.aborted == 0) {
      me.gave_up = 1;
      return;
    }
    me.killed = 1;
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) {
      if (!is_worker(rank) || !progress().is_awaited(rank)) continue;
      next.ranks[rank].doomed = 1;
      if (what_.is_without(mutation::deaths_are_awaited)) me.died[rank] = 1;
    }
  }

  void read_replies(states& made) const {
    auto next = in_;
    auto& me = next.caller;
    if (in_.ranks[me.whom].reply != me.epoch) me.outputs_are_right = 0;
    me.told[me.whom] = 1;
    if (static_cast<std::size_t>(++me.whom) < what_.ranks) return made.push_back(next);
    me.whom = 0;
    me.again = 1;
    me.now = what_.is_without(mutation::second_look) ? pc::flip : pc::look_at_answer;
    made.push_back(next);
    if (!what_.is_refused) return;
    made.push_back(next);
    made.back().caller.gave_up = 1;
  }

  // Of the call, as the user sees it.
  void end(state& next) const {
    auto& me = next.caller;
    for (std::size_t replica = 0; replica < what_.ranks; ++replica) {
      for (std::size_t part = 0; part < what_.ranks; ++part) {
        if (in_.value[replica][me.live][part] != me.version) next.what = wrong::wrong_value;
      }
    }
    me.in_call = me.again = me.gave_up = me.aborted = me.killed = 0;
    me.outputs_are_right = 1;
    me.answers.fill(rank_phase::absent);
    me.died.fill(0);
    me.now = pc::replace;
    if (me.epoch < what_.calls) return;
    me.now = pc::finished;
    next.command = world_order::close;
  }

  const scenario& what_;
  const state& in_;
};

/// Deaths, burials, and the processes that come for those who are gone.
class surroundings {
public:
  surroundings(const scenario& what, const state& in) : what_(what), in_(in) {}

  void follow(states& made) const {
    for (std::size_t rank = what_.caller_computes ? 1 : 0; rank < what_.ranks; ++rank) follow(rank, made);
  }

private:
  void follow(std::size_t rank, states& made) const {
    const auto& each = in_.ranks[rank];
    switch (each.alive) {
      case life::lives:
        if (each.now == pc::left || in_.caller.now == pc::finished) return;
        if (each.doomed != 0) kill(rank, made);
        if (each.doomed == 0 && in_.deaths_left > 0) {
          kill(rank, made);
          --made.back().deaths_left;
        }
        return;
      case life::buried:
        if (each.asked_for != 0) start(rank, made);
        return;
      default: return bury(rank, made);
    }
  }

  void kill(std::size_t rank, states& made) const {
    made.push_back(in_);
    auto& each = made.back().ranks[rank];
    const auto left = each;
    each = {.alive = life::killed};
    each.answer = left.answer;
    each.answer_epoch = left.answer_epoch;
    each.news = left.news;
    each.offered = left.offered;
    each.reply = left.reply;
  }

  // Who it was is forgotten, then its memory is given away. Only then another one can come.
  void bury(std::size_t rank, states& made) const {
    made.push_back(in_);
    auto& each = made.back().ranks[rank];
    const bool is_first = each.alive == life::killed;
    if (is_first == what_.is_without(mutation::burial_order)) each.offered = each.reply = garbage;
    each.alive = is_first ? life::half_buried : life::buried;
  }

  void start(std::size_t rank, states& made) const {
    made.push_back(in_);
    auto& each = made.back().ranks[rank];
    each.alive = life::lives;
    each.asked_for = 0;
    each.now = pc::join;
  }

  const scenario& what_;
  const state& in_;
};

/// Goes through all that can happen, in depth: what is on the way to a state cannot come behind it, or somebody would
/// go round for ever.
class exploration {
public:
  explicit exploration(const scenario& what) : what_(what) {}

  std::string run() {
    if (auto found = enter(first()); !found.empty()) return found;
    while (!way_.empty()) {
      auto& now = way_.back();
      if (now.next.empty()) {
        seen_[now.name] = true;
        way_.pop_back();
        continue;
      }
      const auto next = now.next.back();
      now.next.pop_back();
      if (auto found = enter(next); !found.empty()) return found;
    }
    return {};
  }
  [[nodiscard]] std::size_t count() const { return seen_.size(); }

private:
  using fingerprint = std::pair<std::uint64_t, std::uint64_t>;
  struct hash_of {
    std::size_t operator()(const fingerprint& of) const { return of.first; }
  };
  struct place {
    fingerprint name;
    states next;
  };

  [[nodiscard]] state first() const {
    state made;
    made.deaths_left = what_.deaths;
    made.failures_left = what_.failures;
    made.hangs_left = what_.hangs;
    for (std::size_t rank = 0; rank < what_.ranks; ++rank) made.ranks[rank].now = pc::join;
    if (!what_.caller_computes) return made;
    made.ranks[0].now = pc::serve;
    made.ranks[0].answer = rank_phase::ready;
    return made;
  }

  std::string enter(const state& now) {
    if (now.what != wrong::nothing) return describe(now.what);
    const auto hash = XXH3_128bits(&now, sizeof now);
    const fingerprint name{hash.low64, hash.high64};
    const auto [found, is_new] = seen_.try_emplace(name, false);
    if (!is_new) return found->second ? "" : "somebody goes round for ever";
    way_.push_back({.name = name, .next = successors(now)});
    return way_.back().next.empty() ? judge(now) : "";
  }

  [[nodiscard]] states successors(const state& now) const {
    states made;
    states of_one;
    const auto take = [&] {
      made.insert(made.end(), of_one.begin(), of_one.end());
      of_one.clear();
    };
    caller_stepper(what_, now).follow(of_one);
    take();
    for (std::size_t rank = what_.caller_computes ? 1 : 0; rank < what_.ranks; ++rank) {
      if (now.ranks[rank].alive != life::lives) continue;
      rank_stepper(what_, now, rank).follow(of_one);
      take();
    }
    surroundings(what_, now).follow(of_one);
    take();
    return made;
  }

  // Nobody moves.
  [[nodiscard]] std::string judge(const state& now) const {
    if (now.caller.now != pc::finished) return "a call does not end";
    for (std::size_t rank = what_.caller_computes ? 1 : 0; rank < what_.ranks; ++rank) {
      const auto& each = now.ranks[rank];
      if (each.alive == life::lives && each.now != pc::left) return "a rank does not leave";
    }
    const bool can_fail = what_.deaths + what_.failures + what_.hangs > 0 || what_.is_given_up || what_.is_refused;
    if (!can_fail && now.caller.version != what_.calls) return "a call has failed for nothing";
    return {};
  }

  static std::string describe(wrong what) {
    switch (what) {
      case wrong::live_write: return "a live copy was written to";
      case wrong::late_write: return "a copy was written to after its call";
      case wrong::other_arguments: return "arguments of another call were read";
      case wrong::unknown_function: return "a rank was asked for a function of which it was not told";
      case wrong::wrong_outputs: return "a call has counted with outputs that were not its ranks'";
      default: return "replicas differ, or are not what the last call left";
    }
  }

  const scenario what_;
  std::vector<place> way_;
  std::unordered_map<fingerprint, bool, hash_of> seen_;  // true: and everything that comes of it
};

std::string explore(const scenario& what) {
  exploration all(what);
  auto found = all.run();
  std::printf("%zu ranks%s, %u calls, %u deaths, %u failures, %u hang%s%s: %zu states: %s\n", what.ranks,
              what.caller_computes ? "" : " without the caller", what.calls, what.deaths, what.failures, what.hangs,
              what.is_given_up ? ", given up" : "", what.is_refused ? ", refused" : "", all.count(),
              found.empty() ? "right" : found.c_str());
  std::fflush(stdout);
  return found;
}

TEST(WorldModel, TwoRanksHaveEqualReplicasWhateverHappens) {
  EXPECT_EQ(explore({.calls = 4}), "");
  EXPECT_EQ(explore({.calls = 4, .deaths = 1, .failures = 1}), "");
  EXPECT_EQ(explore({.calls = 3, .deaths = 2, .is_refused = true}), "");
  EXPECT_EQ(explore({.calls = 3, .deaths = 2, .failures = 1, .is_given_up = true}), "");
  EXPECT_EQ(explore({.calls = 3, .deaths = 1, .failures = 1, .hangs = 1, .is_given_up = true}), "");
  EXPECT_EQ(explore({.caller_computes = false, .calls = 3, .deaths = 1}), "");
  EXPECT_EQ(explore({.caller_computes = false, .calls = 2, .deaths = 2, .failures = 1}), "");
}

TEST(WorldModel, ThreeRanksHaveEqualReplicasWhateverHappens) {
  EXPECT_EQ(explore({.ranks = 3, .calls = 2}), "");
  EXPECT_EQ(explore({.ranks = 3, .calls = 2, .deaths = 1}), "");
  EXPECT_EQ(explore({.ranks = 3, .calls = 1, .deaths = 1, .failures = 1}), "");
  EXPECT_EQ(explore({.ranks = 3, .calls = 1, .deaths = 2}), "");
  EXPECT_EQ(explore({.ranks = 3, .calls = 1, .is_given_up = true}), "");
}

TEST(WorldModelMutation, WhateverIsLeftOutIsMissed) {
  const auto is_missed = [](scenario what) { return explore(what) != ""; };
  EXPECT_TRUE(is_missed({.deaths = 1, .without = mutation::second_look}));
  EXPECT_TRUE(is_missed({.failures = 1, .without = mutation::quiet_after_abort}));
  EXPECT_TRUE(is_missed({.deaths = 1, .without = mutation::death_after_done}));
  EXPECT_TRUE(is_missed({.deaths = 1, .without = mutation::outputs_first}));
  EXPECT_TRUE(is_missed({.is_given_up = true, .without = mutation::deaths_are_awaited}));
  EXPECT_TRUE(is_missed({.deaths = 1, .without = mutation::burial_order}));
  EXPECT_TRUE(is_missed({.without = mutation::second_copy}));
  EXPECT_TRUE(is_missed({.failures = 1, .without = mutation::told_when_done}));
  EXPECT_TRUE(is_missed({.deaths = 1, .without = mutation::replaced_knows_nothing}));
  EXPECT_TRUE(is_missed({.without = mutation::await_all_computed}));
  EXPECT_TRUE(is_missed({.caller_computes = false, .without = mutation::epoch_of_answer}));
  EXPECT_TRUE(is_missed({.deaths = 1, .without = mutation::epoch_of_joining}));
  EXPECT_TRUE(is_missed({.failures = 1, .without = mutation::abort_is_told}));
  EXPECT_TRUE(is_missed({.failures = 1, .without = mutation::abort_in_exchange}));
  EXPECT_TRUE(is_missed({.failures = 1, .without = mutation::abort_before_run}));
  EXPECT_TRUE(is_missed({.caller_computes = false, .failures = 1, .without = mutation::failure_ends_wait}));
  EXPECT_TRUE(is_missed({.deaths = 1, .without = mutation::deaths_in_wait}));
  EXPECT_TRUE(
      is_missed({.ranks = 3, .deaths = 1, .hangs = 1, .is_given_up = true, .without = mutation::only_news_in_wait}));
  EXPECT_TRUE(is_missed({.failures = 1, .without = mutation::caller_is_hopeless}));
}

}  // namespace
}  // namespace muster::world_model_test
