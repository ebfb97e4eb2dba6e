// SPDX-License-Identifier: BSL-1.0
#include "group_ranks.hpp"

#include <vector>

#include "comparison.hpp"

namespace bench {

void group_rank::give_room(const rank_command& what) {
  const auto count = what.bytes / sizeof(float);
  const auto part = count / size();
  if (input_.size() != count) input_ = muster::tensor::empty<float>({count});
  part_ = input_.slice(rank() * part, (rank() + 1) * part);
  const auto results = result_size(what.operation, count, size());
  if (is_in_place(what.operation)) {
    output_ = input_;
  } else if (output_.data() == input_.data() || output_.size() != results) {
    output_ = muster::tensor::empty<float>({results});
  }
}

void group_rank::perform(rank_operation which) {
  switch (which) {
    case rank_operation::barrier: group_->barrier(); break;
    case rank_operation::all_reduce: group_->all_reduce(input_); break;
    case rank_operation::broadcast: group_->broadcast(input_, 0); break;
    case rank_operation::all_gather: group_->all_gather(part_, output_); break;
    case rank_operation::reduce_scatter: group_->reduce_scatter(input_, output_); break;
    case rank_operation::ping_pong:
      if (rank() == 0) group_->send(input_, 1);
      group_->recv(output_, 1 - rank());
      if (rank() == 1) group_->send(input_, 0);
      break;
    case rank_operation::send:
      if (rank() == 0) {
        group_->send(input_, 1);
      } else {
        group_->recv(output_, 0);
      }
      break;
  }
}

namespace {

group_rank make_rank() { return {}; }

void join(group_rank& self, const muster::group_ticket& ticket, std::size_t rank) { self.join(ticket, rank); }

std::chrono::nanoseconds take_turn(group_rank& self, const rank_command& what) { return rank_turn(self, what).run(); }
std::vector<double> take_single_turns(group_rank& self, const rank_command& what) {
  return rank_turn(self, what).run_singly();
}

}  // namespace

group_ranks::group_ranks(std::size_t ranks) : workers_(make_rank, {.workers = static_cast<unsigned>(ranks)}) {
  const muster::group_ticket ticket(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) workers_.on(rank).apply(join, ticket, rank);
  for (const auto& each : workers_.workers()) pin(each.pid, each.index);
}

namespace {

// What rank 0 says, once all are through.
template <class Turn>
auto of_first_rank(const muster::ctx_pool<group_rank>& workers, Turn turn, const rank_command& what) {
  std::vector<decltype(workers.on(0).apply_async(turn, what))> turns;
  turns.reserve(workers.size());
  for (std::size_t rank = 0; rank < workers.size(); ++rank) turns.push_back(workers.on(rank).apply_async(turn, what));
  for (std::size_t rank = turns.size(); rank-- > 1;) turns[rank].get();
  return turns.front().get();
}

}  // namespace

std::chrono::nanoseconds group_ranks::run(const rank_command& what) { return of_first_rank(workers_, take_turn, what); }

std::vector<double> group_ranks::run_singly(const rank_command& what) {
  return of_first_rank(workers_, take_single_turns, what);
}

}  // namespace bench
