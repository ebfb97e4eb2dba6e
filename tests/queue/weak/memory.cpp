// SPDX-License-Identifier: BSL-1.0
#include "memory.hpp"

#include <algorithm>
#include <cstdlib>

namespace muster::weak {

namespace {

bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

std::size_t place_of(const memory& in, std::size_t location, event_id which) {
  if (which.time == 0) return 0;
  const auto& order = in.locations[location].order;
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), which) - order.begin()) + 1;
}

// The place in the modification order that an access stands for.
std::size_t place_of_access(const memory& in, event_id which) {
  const auto& access = in.at(which);
  return place_of(in, access.location, access.writes != 0 ? which : access.read_from);
}

// Coherence: nothing before this place can be read any more by whoever knows that much, nor can he write before it.
std::size_t earliest_place(const memory& in, const vector_clock& knows, std::size_t location) {
  std::size_t earliest = 0;
  for (std::uint8_t thread = 0; thread < most_threads; ++thread) {
    for (auto time = knows.of[thread]; time > 0; --time) {
      if (in.threads[thread].events[time - 1U].location != location) continue;
      earliest = std::max(earliest, place_of_access(in, {.thread = thread, .time = time}));
      break;  // its earlier accesses come earlier
    }
  }
  return earliest;
}

// Whether a read-modify-write stands directly after the place: nothing else can come between.
bool is_followed_closely(const memory& in, std::size_t location, std::size_t place) {
  const auto& where = in.locations[location];
  if (place >= where.changes) return false;
  const auto& next = in.at(where.order[place]);
  return next.reads != 0;
}

// Whether the ordered operation `a` comes before `b`, as far as two of them tell alone.
bool precedes(const memory& in, const ordered_operation& a, const ordered_operation& b) {
  if (a.which.thread == b.which.thread) return a.which.time < b.which.time;
  if (b.before.of[a.which.thread] > a.which.time) return true;  // strongly happens before
  const auto& first = in.at(a.which);
  const auto& second = in.at(b.which);
  if (first.location != second.location) return false;
  const auto before = place_of_access(in, a.which);
  const auto after = place_of_access(in, b.which);
  return first.writes != 0 && second.writes == 0 ? before <= after : before < after;
}

bool has_total_order(const memory& in) {
  std::array<std::uint32_t, most_ordered> after{};
  for (std::size_t a = 0; a < in.ordered_count; ++a) {
    for (std::size_t b = 0; b < in.ordered_count; ++b) {
      if (a != b && precedes(in, in.ordered[a], in.ordered[b])) after[a] |= 1U << b;
    }
  }
  for (std::size_t middle = 0; middle < in.ordered_count; ++middle) {
    for (std::size_t each = 0; each < in.ordered_count; ++each) {
      if ((after[each] >> middle & 1U) != 0) after[each] |= after[middle];
    }
  }
  for (std::size_t each = 0; each < in.ordered_count; ++each) {
    if ((after[each] >> each & 1U) != 0) return false;
  }
  return true;
}

event_id latest(const memory& in, std::size_t thread) {
  return {.thread = static_cast<std::uint8_t>(thread), .time = in.threads[thread].length};
}

event& add(memory& in, std::size_t thread, std::size_t location, std::memory_order order) {
  const auto before = in.threads[thread].knows;
  auto& made = mark(in, thread);
  made.location = static_cast<std::uint8_t>(location);
  if (order == std::memory_order_seq_cst) {
    if (in.ordered_count == most_ordered) std::abort();
    in.ordered[in.ordered_count++] = {.which = latest(in, thread), .before = before};
  }
  return made;
}

void read_at(memory& in, std::size_t thread, event& reader, std::size_t place, std::memory_order order) {
  reader.reads = 1;
  if (place == 0) return;
  reader.read_from = in.locations[reader.location].order[place - 1];
  if (acquires(order)) in.threads[thread].knows.join(in.at(reader.read_from).released);
}

void write_after(memory& in, std::size_t thread, event& writer, std::size_t place, std::memory_order order) {
  auto& where = in.locations[writer.location];
  if (where.changes == most_changes) std::abort();
  writer.writes = 1;
  writer.might_write = 1;
  if (writer.reads != 0 && place != 0) writer.released = in.at(writer.read_from).released;  // release sequence
  if (releases(order)) writer.released.join(in.threads[thread].knows);
  std::copy_backward(where.order.begin() + static_cast<std::ptrdiff_t>(place), where.order.begin() + where.changes,
                     where.order.begin() + where.changes + 1);
  where.order[place] = latest(in, thread);
  ++where.changes;
}

std::uint64_t changed(std::uint64_t before, const request& what) {
  switch (what.how) {
    case change::set_bits: return before | what.operand;
    case change::clear_bits: return before & what.operand;
    default: return what.operand;
  }
}

// The places that are possible, the newest first.
struct places {
  std::array<std::uint8_t, most_changes + 1> all{};
  std::size_t count = 0;
};

template <class IsPossible>
places possible_places(const memory& in, std::size_t location, std::size_t earliest, IsPossible is_possible) {
  places found;
  for (std::size_t place = in.locations[location].changes + 1U; place-- > earliest;) {
    if (is_possible(place)) found.all[found.count++] = static_cast<std::uint8_t>(place);
  }
  return found;
}

outcome load_from(memory& in, std::size_t thread, const request& what, std::size_t way, std::size_t earliest) {
  const auto found = possible_places(in, what.location, earliest, [](std::size_t) { return true; });
  const std::size_t place = found.all[way];
  auto& reader = add(in, thread, what.location, what.order);
  read_at(in, thread, reader, place, what.order);
  reader.result = in.value_at(what.location, place);
  return {.value = reader.result, .ways = found.count, .is_consistent = has_total_order(in)};
}

}  // namespace

std::uint64_t memory::value_at(std::size_t location, std::size_t place) const {
  return place == 0 ? locations[location].initial : at(locations[location].order[place - 1]).written;
}

std::uint64_t memory::last_value(std::size_t location) const { return value_at(location, locations[location].changes); }

event& mark(memory& in, std::size_t thread) {
  auto& log = in.threads[thread];
  if (log.length == most_events) std::abort();
  log.knows.of[thread] = ++log.length;
  return log.events[log.length - 1U] = {};
}

outcome load(memory& in, std::size_t thread, const request& what, std::size_t way) {
  return load_from(in, thread, what, way, earliest_place(in, in.threads[thread].knows, what.location));
}

outcome kernel_load(memory& in, std::size_t thread, const request& what, std::size_t way) {
  auto knows = in.threads[thread].knows;
  knows.join(in.locations[what.location].kernel);
  return load_from(in, thread, what, way, earliest_place(in, knows, what.location));
}

outcome store(memory& in, std::size_t thread, const request& what, std::size_t way) {
  const auto found = possible_places(in, what.location, earliest_place(in, in.threads[thread].knows, what.location),
                                     [&](std::size_t place) { return !is_followed_closely(in, what.location, place); });
  auto& writer = add(in, thread, what.location, what.order);
  writer.written = what.operand;
  write_after(in, thread, writer, found.all[way], what.order);
  return {.ways = found.count, .is_consistent = has_total_order(in)};
}

// A compare-and-swap that finds another value is a load of its own order, and may find an old one.
outcome modify(memory& in, std::size_t thread, const request& what, std::size_t way) {
  const auto fails = [&](std::size_t place) {
    return what.how == change::compare && in.value_at(what.location, place) != what.expected;
  };
  const auto found = possible_places(
      in, what.location, earliest_place(in, in.threads[thread].knows, what.location),
      [&](std::size_t place) { return fails(place) || !is_followed_closely(in, what.location, place); });
  const std::size_t place = found.all[way];
  const bool failed = fails(place);
  const auto order = failed ? what.on_failure : what.order;
  auto& both = add(in, thread, what.location, order);
  read_at(in, thread, both, place, order);
  both.result = in.value_at(what.location, place);
  both.might_write = 1;
  if (!failed) {
    both.written = changed(both.result, what);
    write_after(in, thread, both, place, order);
  }
  return {.value = both.result, .ways = found.count, .is_consistent = has_total_order(in)};
}

bool read_cell(memory& in, std::size_t thread, std::size_t cell) {
  auto& where = in.cells[cell];
  auto& reader = mark(in, thread);
  reader.result = where.value;
  where.read_at[thread] = in.threads[thread].length;
  return where.writer.time <= in.threads[thread].knows.of[where.writer.thread];
}

bool write_cell(memory& in, std::size_t thread, std::size_t cell, std::uint64_t value) {
  auto& where = in.cells[cell];
  auto& writer = mark(in, thread);
  writer.written = value;
  const auto& knows = in.threads[thread].knows;
  bool is_alone = where.writer.time <= knows.of[where.writer.thread];
  for (std::size_t other = 0; other < most_threads; ++other) {
    is_alone = is_alone && where.read_at[other] <= knows.of[other];
  }
  where = {.value = value, .writer = latest(in, thread), .read_at = {}};
  return is_alone;
}

}  // namespace muster::weak
