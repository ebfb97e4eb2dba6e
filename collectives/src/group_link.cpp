// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/group_link.hpp>

#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

constexpr unsigned place_bits = 32;

std::size_t rank_of(int rank) {
  if (rank >= 0) return static_cast<std::size_t>(rank);
  throw error(errc::invalid_argument, text("rank ", rank, " was given to a graph's link: ranks begin with 0"));
}

std::uint32_t tag_of(int tag) {
  if (tag >= 0) return static_cast<std::uint32_t>(tag);
  throw error(errc::invalid_argument, text("tag ", tag, " was given to a graph's link: tags begin with 0"));
}

}  // namespace

graph_link::ticket group_link::isend(const tensor& what, int to, int tag) {
  return keep(group_.isend(what, rank_of(to), tag_of(tag)));
}

graph_link::ticket group_link::irecv(const tensor& room, int from, int tag) {
  return keep(group_.irecv(room, rank_of(from), tag_of(tag)));
}

graph_link::ticket group_link::keep(work started) {
  if (free_.empty()) {
    slots_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const auto place = free_.back();
  free_.pop_back();
  slots_[place].operation = std::move(started);
  return std::uint64_t{slots_[place].used} << place_bits | (place + std::uint64_t{1});
}

group_link::slot& group_link::find(ticket which) {
  const auto place = static_cast<std::size_t>(static_cast<std::uint32_t>(which)) - 1;
  if (place < slots_.size() && slots_[place].operation.valid() && slots_[place].used == which >> place_bits) {
    return slots_[place];
  }
  throw error(errc::invalid_argument,
              text("ticket ", which, " of a graph's link was waited for: it is used up, or another's"));
}

void group_link::release(slot& which) {
  which.operation = work();
  ++which.used;
  free_.push_back(static_cast<std::uint32_t>(&which - slots_.data()));
}

// A wait that is over at once finds out what has become of the others too.
bool group_link::test(ticket which) {
  return wait(which, find(which).operation.test() ? deadline::never() : deadline(clock::time_point()));
}

// What has ended has ended, whatever became of the group meanwhile: whose message was refused is told that, though the
// rank that refused it broke the group right afterwards.
bool group_link::wait(ticket which, deadline until) {
  auto& found = find(which);
  try {
    if (!found.operation.wait_until(until)) return false;
  } catch (const group_error&) {
    if (!found.operation.test()) throw;
    found.operation.wait();
  }
  release(found);
  return true;
}

void group_link::abort(std::string_view why) noexcept { group_.abort(std::string(why)); }

}  // namespace muster
