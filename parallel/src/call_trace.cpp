// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/call_trace.hpp>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <muster/base/standard_streams.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/detail/trace_writer.hpp>

namespace muster::detail {

namespace {

constexpr std::size_t caller_row = 1;
constexpr std::size_t first_rank_row = 2;

std::string json(std::string_view value) {
  std::string made;
  append_json(made, value);
  return made;
}

std::string microseconds(std::chrono::nanoseconds time) {
  std::string made;
  append_time(made, time);
  return made;
}

std::string begun(char phase, std::size_t row) {
  return text("{\"ph\":\"", phase, "\",\"pid\":", ::getpid(), ",\"tid\":", row);
}

}  // namespace

call_trace::~call_trace() {
  try {
    end();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nobody is there who could be told
  }
}

void call_trace::begin(const std::filesystem::path& file, std::string_view world, std::size_t ranks) {
  const scoped_lock lock(mutex_);
  finish();
  file_ = file;
  errno = 0;
  out_.clear();
  {
    const standard_streams_filled while_it_is_opened;  // what the program prints is not for the trace
    out_.open(file, std::ios::binary | std::ios::trunc);
  }
  if (!out_) throw_unwritable(file_);
  out_ << "[\n";
  is_first_ = true;
  write(text(begun('M', caller_row), ",\"name\":\"process_name\",\"args\":{\"name\":", json(world), "}}"));
  write_row(text(world, " caller"), caller_row);
  for (std::size_t rank = 0; rank < ranks; ++rank) write_row(text(world, " rank ", rank), first_rank_row + rank);
  is_on_.store(true, std::memory_order_relaxed);
}

void call_trace::end() {
  const scoped_lock lock(mutex_);
  finish();
}

void call_trace::finish() {
  if (!is_on_.exchange(false, std::memory_order_relaxed)) return;
  errno = 0;
  out_ << "\n]\n";
  out_.close();
  if (!out_) throw_unwritable(file_);
}

void call_trace::write(std::string_view event) { out_ << (std::exchange(is_first_, false) ? "" : ",\n") << event; }

void call_trace::write_row(std::string_view name, std::size_t row) {
  write(text(begun('M', row), ",\"name\":\"thread_name\",\"args\":{\"name\":", json(name), "}}"));
  write(text(begun('M', row), ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":", row, "}}"));
}

void call_trace::add(const traced_call& call) {
  if (!is_on()) return;
  const scoped_lock lock(mutex_);
  if (!is_on()) return;
  const auto function = json(call.function);
  const auto when = microseconds(call.begin.time_since_epoch());
  write(text(begun('X', caller_row), ",\"cat\":\"call\",\"name\":", function, ",\"ts\":", when,
             ",\"dur\":", microseconds(call.total), ",\"args\":{\"input_bytes\":", call.input_bytes,
             ",\"failed\":", call.failed ? "true" : "false", "}}"));
  for (std::size_t rank = 0; rank < call.ranks.size(); ++rank) write_rank(call, rank, function);
}

// A rank tells how long it was at what, in sum over its slices: shown one after the other, from the call's beginning.
void call_trace::write_rank(const traced_call& call, std::size_t rank, std::string_view function) {
  const auto& times = call.ranks[rank];
  auto at = std::chrono::nanoseconds(call.begin.time_since_epoch());
  const std::array<std::pair<std::string_view, float>, 5> parts{{{"scatter", times.scatter},
                                                                 {"compute", times.compute},
                                                                 {"accumulate", times.accumulate},
                                                                 {"wait", times.wait},
                                                                 {"reduce", times.reduce}}};
  for (const auto& [name, time] : parts) {
    const auto length = nanoseconds_of(time);
    if (length.count() <= 0) continue;
    write(text(begun('X', first_rank_row + rank), ",\"cat\":\"rank\",\"name\":\"", name, "\",\"ts\":", microseconds(at),
               ",\"dur\":", microseconds(length), ",\"args\":{\"function\":", function, "}}"));
    at += length;
  }
}

}  // namespace muster::detail
