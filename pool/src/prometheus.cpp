// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include <muster/pool/pool_statistics.hpp>

namespace muster {

namespace {

std::string escaped(std::string_view value) {
  std::string out;
  for (const char each : value) {
    switch (each) {
      case '\\': out += "\\\\"; break;
      case '"': out += "\\\""; break;
      case '\n': out += "\\n"; break;
      default: out += each;
    }
  }
  return out;
}

template <class Number>
void append_number(std::string& out, Number value) {
  std::array<char, 32> room;
  const auto end = std::to_chars(room.data(), room.data() + room.size(), value).ptr;
  out.append(room.data(), end);
}

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// Writes one family of samples after the other.
class page {
public:
  explicit page(std::string_view pool_name) : pool_(escaped(pool_name)) {}

  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    out_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  }
  /// `labels`: further ones, each after a comma.
  template <class Number>
  void sample(Number value, std::string_view labels = {}) {
    out_.append(name_).append("{pool=\"").append(pool_).append("\"").append(labels).append("} ");
    append_number(out_, value);
    out_ += '\n';
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    begin(name, "counter", help);
    sample(value);
  }
  void gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    begin(name, "gauge", help);
    sample(value);
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

private:
  const std::string pool_;
  std::string_view name_;
  std::string out_;
};

std::string label_of(const worker_statistics& worker) {
  std::string label = ",worker=\"";
  append_number(label, worker.index);
  return label + '"';
}

void add_tasks(page& out, const pool_statistics& all) {
  const auto& tasks = all.tasks;
  out.counter("muster_tasks_accepted_total", "Tasks accepted; a chunk of a map counts as one.", tasks.accepted);
  out.counter("muster_tasks_ended_total", "Tasks ended, in whatever way.", tasks.ended);
  out.counter("muster_tasks_retried_total", "Attempts after the first.", tasks.retried);
  out.counter("muster_tasks_requeued_total", "Tasks given to another worker because theirs died before it began.",
              tasks.requeued);
  out.counter("muster_tasks_timed_out_total", "Tasks and elements ended by a timeout or deadline.", tasks.timed_out);
  out.counter("muster_tasks_lost_total", "Tasks and elements ended by the death of their worker.", tasks.lost);
  out.counter("muster_tasks_quarantined_total", "Tasks and elements that killed too many workers.", tasks.quarantined);
  out.counter("muster_tasks_corrupted_total", "Tasks ended because their shared memory was overwritten.",
              tasks.corrupted);
  out.counter("muster_damage_total", "Times that overwritten words were noticed in shared memory.", tasks.damaged);
  out.counter("muster_argument_copied_bytes_total", "Bytes of arguments that were copied.",
              tasks.argument_bytes_copied);
  out.counter("muster_argument_referenced_bytes_total", "Bytes of arguments that went along in shared memory.",
              tasks.argument_bytes_referenced);
  out.gauge("muster_tasks_pending", "Tasks accepted and not ended.", all.pending);
  out.gauge("muster_tasks_waiting", "Tasks that wait for a slot.", tasks.waiting);
}

template <class Get>
void add_each(page& out, const pool_statistics& all, const char* name, const char* type, const char* help, Get get) {
  out.begin(name, type, help);
  for (const auto& each : all.each_worker) out.sample(get(each), label_of(each));
}

void add_processes(page& out, const pool_statistics& all) {
  struct reason {
    const char* name;
    std::uint64_t crew_statistics::* count;
  };
  static constexpr std::array reasons = {
      reason{"recycled", &crew_statistics::recycled},   reason{"killed", &crew_statistics::killed},
      reason{"exited", &crew_statistics::exited},       reason{"failed_start", &crew_statistics::failed_starts},
      reason{"suspected", &crew_statistics::suspected}, reason{"overdue", &crew_statistics::overdue},
      reason{"cancelled", &crew_statistics::cancelled}, reason{"retired", &crew_statistics::retired}};
  add_each(out, all, "muster_worker_starts_total", "counter", "Processes started for the worker.",
           [](const worker_statistics& each) { return each.processes.started; });
  out.begin(
      "muster_worker_ends_total", "counter",
      "Ends of the worker's processes by reason; those killed as suspected, overdue or cancelled are also killed.");
  for (const auto& each : all.each_worker) {
    for (const auto& [name, count] : reasons) {
      out.sample(each.processes.*count, label_of(each) + ",reason=\"" + name + '"');
    }
  }
  out.counter("muster_crew_replacements_total", "Times all workers were replaced.", all.workers.replacements);
}

void add_memory(page& out, const pool_statistics& all) {
  out.gauge("muster_memory_in_use_bytes", "Shared memory in blocks, of the domain that pools share.",
            all.memory.in_use_bytes());
  out.gauge("muster_memory_warm_bytes", "Shared memory that was freed and is kept for the next allocations.",
            all.memory.warm_bytes);
}

void add_workers(page& out, const pool_statistics& all) {
  if (all.each_worker.empty()) return;
  add_each(out, all, "muster_worker_up", "gauge", "1 while the worker takes tasks.",
           [](const worker_statistics& each) { return each.state == worker_lifecycle::state::working ? 1 : 0; });
  add_each(out, all, "muster_worker_tasks_total", "counter", "Tasks the worker has done.",
           [](const worker_statistics& each) { return each.tasks_done; });
  add_each(out, all, "muster_worker_working_seconds_total", "counter", "Time at tasks, while times are taken.",
           [](const worker_statistics& each) { return seconds(each.working); });
  add_each(out, all, "muster_worker_idle_seconds_total", "counter", "Time without a task, while times are taken.",
           [](const worker_statistics& each) { return seconds(each.idle); });
  add_each(out, all, "muster_worker_start_up_seconds", "gauge", "How long its last start took.",
           [](const worker_statistics& each) { return seconds(each.start_up); });
  add_each(out, all, "muster_worker_warm_bytes", "gauge", "Shared memory that its process keeps warm.",
           [](const worker_statistics& each) { return each.warm_bytes; });
  add_processes(out, all);
}

}  // namespace

std::string to_prometheus(const pool_statistics& statistics, std::string_view pool_name) {
  page out(pool_name);
  add_tasks(out, statistics);
  add_memory(out, statistics);
  add_workers(out, statistics);
  return out.take();
}

}  // namespace muster
