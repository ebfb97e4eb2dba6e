// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/rpc_trace.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include <muster/base/standard_streams.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/detail/trace_writer.hpp>

namespace muster::detail {

namespace {

// An arrow begins at a slice, so that each post is one.
constexpr std::chrono::nanoseconds post_time(50);

void append_member(std::string& to, std::string_view name, std::string_view value) {
  to.append(",\"").append(name).append("\":");
  append_json(to, value);
}

void append_member(std::string& to, std::string_view name, std::chrono::nanoseconds time) {
  to.append(",\"").append(name).append("\":");
  append_time(to, time);
}

void append_member(std::string& to, std::string_view name, clock::time_point when) {
  append_member(to, name, when.time_since_epoch());
}

unique_fd open_for_all(const std::string& file) {
  unique_fd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!made) throw_unwritable(file);
  return above_standard_streams(std::move(made));
}

// Members that come to a new file at once would each begin it: one of them makes it, under another name.
void begin_file(const std::string& file) {
  const auto draft = text(file, ".", ::getpid(), ".", ::gettid());
  const unique_fd made(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!made) throw_unwritable(file);
  const bool is_written = ::write(made.get(), "[\n", 2) == 2;
  if (!is_written || (::link(draft.c_str(), file.c_str()) != 0 && errno != EEXIST)) {
    const int cause = errno;
    ::unlink(draft.c_str());
    errno = cause;
    throw_unwritable(file);
  }
  ::unlink(draft.c_str());
}

}  // namespace

// ---- the text

void rpc_trace_text::begin_event(char phase, std::uint64_t thread, std::string_view name) {
  text_.append("{\"ph\":\"").append(1, phase).append("\",\"pid\":").append(std::to_string(member_ + 1));
  text_.append(",\"tid\":").append(std::to_string(thread));
  append_member(text_, "name", name);
}

void rpc_trace_text::add_process(std::string_view group, std::string_view member, std::uint64_t pid) {
  begin_event('M', 0, "process_name");
  text_.append(",\"args\":{\"name\":");
  append_json(text_, text(group, ": ", member, " (process ", pid, ")"));
  text_.append("}},\n");
}

void rpc_trace_text::add_arrow(char phase, std::uint64_t thread, const call_id& call, clock::time_point when) {
  begin_event(phase, thread, "call");
  append_member(text_, "cat", "rpc");
  append_member(text_, "id", text("0x", std::hex, call.pack()));
  append_member(text_, "ts", when);
  text_.append(phase == 'f' ? ",\"bp\":\"e\"},\n" : "},\n");
}

void rpc_trace_text::add(const traced_post& what, std::uint64_t thread) {
  begin_event('X', thread, "post");
  append_member(text_, "cat", "rpc");
  append_member(text_, "ts", what.when);
  append_member(text_, "dur", post_time);
  text_.append(",\"args\":{\"what\":");
  append_json(text_, what.name);
  append_member(text_, "member", what.member);
  text_.append("}},\n");
  add_arrow('s', thread, what.call, what.when);
}

void rpc_trace_text::add(const traced_run& what, std::uint64_t thread) {
  begin_event('X', thread, what.name);
  append_member(text_, "cat", "rpc");
  append_member(text_, "ts", what.begin);
  append_member(text_, "dur", what.end - what.begin);
  text_.append(",\"args\":{\"caller\":");
  append_json(text_, what.caller);
  append_member(text_, "outcome", what.has_failed ? "failed" : "done");
  text_.append("}},\n");
  add_arrow('f', thread, what.call, what.begin);
}

void rpc_trace_text::add_lost(std::uint64_t count, clock::time_point when) {
  begin_event('i', 0, text(count, " events lost: they came faster than they could be written"));
  append_member(text_, "ts", when);
  append_member(text_, "s", "p");
  text_.append("},\n");
}

// ---- the file

void rpc_trace::begin(const std::string& file, std::string_view group, std::string_view member) {
  const scoped_lock control(control_);
  static_cast<void>(stop());  // what has failed is that one's
  begin_file(file);
  descriptor_ = open_for_all(file);
  file_ = file;
  {
    const scoped_lock lock(mutex_);
    stops_ = false;
    text_.add_process(group, member, static_cast<std::uint64_t>(::getpid()));
  }
  thread_ = start_thread([this] { write_on(); });
  is_on_.store(true, std::memory_order_relaxed);
}

void rpc_trace::end() {
  if (const auto failed = finish()) std::rethrow_exception(failed);
}

std::exception_ptr rpc_trace::finish() noexcept {
  const scoped_lock control(control_);
  return stop();
}

std::exception_ptr rpc_trace::stop() noexcept {
  is_on_.store(false, std::memory_order_relaxed);
  if (!thread_.joinable()) return nullptr;
  {
    const scoped_lock lock(mutex_);
    stops_ = true;
    changed_.notify_all();
  }
  thread_.join();
  descriptor_.reset();
  return std::exchange(failure_, nullptr);
}

void rpc_trace::add_event(const auto& what) {
  const scoped_lock lock(mutex_);
  if (stops_ || !is_on()) return;
  if (text_.size() >= most_bytes) {
    ++lost_;
    return;
  }
  text_.add(what, static_cast<std::uint64_t>(::gettid()));
  changed_.notify_all();
}

template void rpc_trace::add_event(const traced_post& what);
template void rpc_trace::add_event(const traced_run& what);

// After the first event some more are let come: a system call for each would be too many.
bool rpc_trace::await_news() {
  constexpr auto collecting = std::chrono::milliseconds(50);
  scoped_lock lock(mutex_);
  while (text_.size() == 0 && !stops_) changed_.wait(lock);
  for (const auto until = deadline::after(collecting); !stops_ && !until.expired();) changed_.wait_until(lock, until);
  return !stops_;
}

// After a failure events are still taken, so that they do not pile up.
void rpc_trace::write_on() noexcept {
  for (bool goes_on = true; goes_on;) {
    goes_on = await_news();
    try {
      write_news();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
}

void rpc_trace::write_news() {
  std::string news;
  {
    const scoped_lock lock(mutex_);
    if (const auto lost = std::exchange(lost_, 0); lost != 0) text_.add_lost(lost, clock::now());
    news = text_.take();
  }
  if (failure_ == nullptr) write_trace(descriptor_.get(), news, file_);
}

}  // namespace muster::detail
