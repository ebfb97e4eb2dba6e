// SPDX-License-Identifier: BSL-1.0
#include "group_support.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include <gtest/gtest.h>

#include <muster/base/unique_fd.hpp>
#include <muster/memory/domain.hpp>
#include <muster/serialize/detail/codec.hpp>

namespace muster::test {

std::ostream& operator<<(std::ostream& out, rank_kind kind) { return out << name_of(kind); }

std::vector<rank_kind> rank_kinds() {
#ifdef __SANITIZE_THREAD__
  return {rank_kind::threads};
#else
  return {rank_kind::threads, rank_kind::processes};
#endif
}

std::string name_of(rank_kind kind) { return kind == rank_kind::threads ? "Threads" : "Processes"; }

// How a ticket gets into a forked process.
class rank_processes::admission final : public attachment_sink, public attachment_source {
public:
  explicit admission(const group_ticket& ticket) : frame_(codec<group_ticket>::size_with(ticket).bytes) {
    codec<group_ticket>::encode_with(frame_, this, ticket);
  }
  [[nodiscard]] group_ticket redeem() { return std::get<0>(codec<group_ticket>::decode(frame_, this)); }
  /// Lets go of it, if nobody has redeemed it.
  void cancel() {
    try {
      domain::of_program()->blocks().receive(sent_).reset();
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): somebody has
    }
  }

  std::uint64_t attach(const shared_block& what) override {
    sent_ = domain::of_program()->blocks().send(what);
    return sent_;
  }
  shared_block take(std::uint64_t name) override { return domain::of_program()->blocks().receive(name); }

private:
  std::uint64_t sent_ = 0;
  std::vector<std::byte> frame_;
};

rank_processes::rank_processes(std::size_t ranks, const rank_body& run_rank, const group_options& options)
    : rank_processes(ranks, ticket_body([&run_rank](const group_ticket& ticket, std::size_t rank) {
                       group mine(ticket, rank);
                       run_rank(mine);
                     }),
                     options) {}

rank_processes::rank_processes(std::size_t ranks, const ticket_body& run_rank, const group_options& options)
    : domain_(domain::of_program({.inherited = true})), ended_(ranks) {
  const group_ticket ticket(ranks, options, domain_);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    ids_.push_back(domain_->participants().enrol());
    admissions_.push_back(std::make_unique<admission>(ticket));
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    processes_.add([&](std::size_t self) { return run(self, run_rank); });
    domain_->participants().publish(ids_[rank], processes_.pid(rank));
  }
}

rank_processes::~rank_processes() {
  for (std::size_t rank = 0; rank < ended_.size(); ++rank) {
    if (ended_[rank]) continue;
    kill(rank);
    end(rank);
  }
}

// The parent says who it is after the fork.
int rank_processes::run(std::size_t rank, const ticket_body& body) {
  const auto joined = std::make_shared<domain>(domain_files{.control = unique_fd(::dup(domain_->files().control.get())),
                                                            .arena = unique_fd(::dup(domain_->files().arena.get()))},
                                               ids_[rank]);
  while (joined->occupant(ids_[rank]) == 0) ::sched_yield();
  domain::enter(joined);
  try {
    body(admissions_[rank]->redeem(), rank);
  } catch (const std::exception& failure) {
    std::printf("rank %zu threw: %s\n", rank, failure.what());
    std::fflush(stdout);
    return 98;
  }
  std::fflush(stdout);
  return testing::Test::HasFailure() ? 97 : 0;
}

exit_status rank_processes::end(std::size_t rank) {
  const auto found = processes_.wait(rank);
  domain_->bury(ids_[rank]);
  admissions_[rank]->cancel();
  ended_[rank] = true;
  return found;
}

void rank_processes::expect_all_end_well() {
  for (std::size_t rank = 0; rank < ended_.size(); ++rank) {
    if (ended_[rank]) continue;
    EXPECT_EQ(end(rank).code(), 0) << "rank " << rank;
  }
}

namespace {

void run_threads(std::size_t ranks, const rank_body& run, const group_options& options) {
  const group_ticket ticket(ranks, options);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        group mine(ticket, rank);
        run(mine);
      } catch (const std::exception& failure) {
        ADD_FAILURE() << "rank " << rank << " threw: " << failure.what();
      }
    });
  }
  for (auto& each : threads) each.join();
}

}  // namespace

void run_group(rank_kind kind, std::size_t ranks, const rank_body& run, const group_options& options) {
  if (kind == rank_kind::threads) return run_threads(ranks, run, options);
  rank_processes processes(ranks, run, options);
  processes.expect_all_end_well();
}

}  // namespace muster::test
