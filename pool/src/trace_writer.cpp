// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/trace_writer.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/standard_streams.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::size_t parent_row = 1;
constexpr std::size_t first_worker_row = 2;
// Arrows start at events, so the parent's row has one for each post. Posts take longer than this one after the other.
constexpr std::chrono::nanoseconds post_length(50);

// How many bytes the sequence of UTF-8 at the beginning has; 0: it is none.
std::size_t utf8_length(std::string_view bytes) noexcept {
  const auto at = [&](std::size_t index) { return static_cast<unsigned char>(bytes[index]); };
  const auto lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (lead < 0xc2 || length == 0 || bytes.size() < length) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if (at(index) < 0x80 || at(index) >= 0xc0) return 0;
  }
  const bool overlong = (lead == 0xe0 && at(1) < 0xa0) || (lead == 0xf0 && at(1) < 0x90);
  const bool outside = (lead == 0xed && at(1) >= 0xa0) || (lead == 0xf4 && at(1) >= 0x90);
  return overlong || outside ? 0 : length;
}

void append_field(std::string& out, std::string_view name, std::chrono::nanoseconds time) {
  out.append(",\"").append(name).append("\":");
  append_time(out, time);
}

void append_field(std::string& out, std::string_view name, std::uint64_t value) {
  out.append(",\"").append(name).append("\":").append(std::to_string(value));
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(",\"").append(name).append("\":");
  append_json(out, value);
}

std::chrono::nanoseconds since_start(clock::time_point when) noexcept { return when.time_since_epoch(); }

std::size_t row_of(const task_event& event) noexcept {
  return first_worker_row + static_cast<std::size_t>(event.worker);
}

}  // namespace

void append_time(std::string& out, std::chrono::nanoseconds time) {
  const auto fraction = std::to_string(time.count() % 1000);
  out.append(std::to_string(time.count() / 1000)).append(".").append(3 - fraction.size(), '0').append(fraction);
}

void append_json(std::string& out, std::string_view value) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += '"';
  while (!value.empty()) {
    const auto length = utf8_length(value);
    const auto first = static_cast<unsigned char>(value.front());
    if (length == 0) {
      out += '?';
    } else if (first < 0x20) {
      out.append("\\u00").append(1, digits[first / 16]).append(1, digits[first % 16]);
    } else {
      if (first == '"' || first == '\\') out += '\\';
      out.append(value.substr(0, length));
    }
    value.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

// ---- the text

void trace_text::begin_event(char phase, std::size_t row) {
  text_.append(some_ ? ",\n" : "").append("{\"ph\":\"").append(1, phase).append("\"");
  append_field(text_, "pid", pid_);
  append_field(text_, "tid", row);
  some_ = true;
}

void trace_text::add_row(std::string_view name, std::size_t row) {
  begin_event('M', row);
  text_.append(",\"name\":\"thread_name\",\"args\":{\"name\":");
  append_json(text_, name);
  text_.append("}}");
  begin_event('M', row);
  text_.append(",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":").append(std::to_string(row)).append("}}");
}

void trace_text::add_rows(std::string_view pool_name, std::size_t workers) {
  begin_event('M', parent_row);
  text_.append(",\"name\":\"process_name\",\"args\":{\"name\":");
  append_json(text_, pool_name);
  text_.append("}}");
  add_row(text(pool_name, " parent"), parent_row);
  pool_name_ = pool_name;
  add_worker_rows(workers);
}

void trace_text::add_worker_rows(std::size_t workers) {
  for (; worker_rows_ < workers; ++worker_rows_) {
    add_row(text(pool_name_, " worker ", worker_rows_), first_worker_row + worker_rows_);
  }
}

void trace_text::add_name(const task_event& event) {
  append_field(text_, "name", event.label ? std::string_view(event.label->text()) : name_of_(event.function));
}

void trace_text::add(const task_event& event) { event.worker < 0 ? add_unbegun(event) : add_run(event); }

void trace_text::add_run(const task_event& event) {
  add_worker_rows(static_cast<std::size_t>(event.worker) + 1);
  begin_event('X', parent_row);
  append_field(text_, "name", std::string_view("post"));
  append_field(text_, "ts", since_start(event.submitted));
  append_field(text_, "dur", post_length);
  text_.append(",\"args\":{\"task\":").append(std::to_string(event.task)).append("}}");

  const auto flow = ++flows_;
  const auto add_arrow = [&](char phase, std::size_t row, clock::time_point when) {
    begin_event(phase, row);
    append_field(text_, "cat", std::string_view("task"));
    append_field(text_, "name", std::string_view("run"));
    append_field(text_, "id", flow);
    append_field(text_, "ts", since_start(when));
    text_.append(phase == 'f' ? ",\"bp\":\"e\"}" : "}");
  };
  add_arrow('s', parent_row, event.submitted);

  begin_event('X', row_of(event));
  append_field(text_, "cat", std::string_view("task"));
  add_name(event);
  append_field(text_, "ts", since_start(event.begin));
  append_field(text_, "dur", event.end - event.begin);
  text_.append(",\"args\":{\"task\":").append(std::to_string(event.task));
  append_field(text_, "attempt", std::uint64_t{event.attempt});
  append_field(text_, "outcome", to_string(event.outcome));
  if (event.chunk) append_field(text_, "elements", std::uint64_t{event.elements});
  if (!event.told) append_field(text_, "times", std::string_view("bounds"));
  append_field(text_, "process", static_cast<std::uint64_t>(event.pid));
  text_.append("}}");
  add_arrow('f', row_of(event), event.begin);
}

void trace_text::add_unbegun(const task_event& event) {
  begin_event('i', parent_row);
  add_name(event);
  append_field(text_, "ts", since_start(event.end));
  append_field(text_, "s", std::string_view("t"));
  text_.append(",\"args\":{\"task\":").append(std::to_string(event.task));
  append_field(text_, "attempt", std::uint64_t{event.attempt});
  append_field(text_, "outcome", to_string(event.outcome));
  text_.append("}}");
}

void trace_text::add_lost(std::uint64_t count) {
  begin_event('i', parent_row);
  append_field(text_, "name", text(count, " events lost: they came faster than they could be written"));
  append_field(text_, "ts", since_start(clock::now()));
  append_field(text_, "s", std::string_view("p"));
  text_.append("}");
}

// ---- the file

void throw_unwritable(const std::filesystem::path& file) {
  const std::error_code cause(errno == 0 ? EIO : errno, std::system_category());  // streams need not set it
  throw error(cause, text("the trace file '", file.string(), "' cannot be written: ", cause.message()));
}

void write_trace(int descriptor, std::string_view bytes, const std::filesystem::path& file) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_unwritable(file);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

namespace {

unique_fd open_file(const std::filesystem::path& file) {
  unique_fd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!made) throw_unwritable(file);
  return above_standard_streams(std::move(made));
}

}  // namespace

trace_writer::trace_writer(const std::filesystem::path& file, dispatcher& from, trace_text text)
    : file_(file), from_(from), text_(std::move(text)), descriptor_(open_file(file)) {
  write("[\n" + text_.take());
  {
    thread_ = start_thread([this] { run(); });
  }
  from_.begin_events([this] {
    const scoped_lock lock(mutex_);
    some_ = true;
    changed_.notify_all();
  });
}

trace_writer::~trace_writer() { stop(); }

void trace_writer::stop() noexcept {
  if (!thread_.joinable()) return;
  from_.end_events();
  {
    const scoped_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void trace_writer::finish() {
  stop();
  if (!failure_) write("\n]\n");
  if (failure_) std::rethrow_exception(failure_);
  const int number = descriptor_.release();
  if (::close(number) != 0) throw_unwritable(file_);
}

// After the first event some more are let come: a system call for each would be too many.
void trace_writer::run() {
  constexpr auto collecting = std::chrono::milliseconds(50);
  for (bool last = false; !last;) {
    {
      scoped_lock lock(mutex_);
      while (!some_ && !stopping_) changed_.wait(lock);
      for (const auto until = deadline::after(collecting); !stopping_ && !until.expired();) {
        changed_.wait_until(lock, until);
      }
      some_ = false;
      last = stopping_;
    }
    write_news();
  }
}

// After a failure events are still taken, so that they do not pile up.
void trace_writer::write_news() noexcept {
  try {
    const auto lost = from_.take_events(news_);
    if (failure_) return;
    for (const auto& each : news_) text_.add(each);
    if (lost > 0) text_.add_lost(lost);
    write(text_.take());
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void trace_writer::write(std::string_view bytes) { write_trace(descriptor_.get(), bytes, file_); }

}  // namespace muster::detail
