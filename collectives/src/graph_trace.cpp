// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/graph_trace.hpp>

#include <chrono>
#include <iomanip>
#include <ostream>

#include <muster/base/text.hpp>

#include "graph_text.hpp"

namespace muster {

namespace {

double microseconds(clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

class graph_trace_writer {
public:
  explicit graph_trace_writer(std::span<const graph_plan> plans) : plans_(plans) {}

  std::string write() {
    out_ << std::fixed << std::setprecision(3) << "[\n";
    for (const auto& plan : plans_) {
      begin('M', plan.rank());
      out_ << R"(,"name":"thread_name","args":{"name":"rank )" << plan.rank() << "\"}}";
      for (std::size_t step = 0; step < plan.steps().size(); ++step) {
        add(plan, plan.steps()[step], plan.times()[step]);
      }
    }
    out_ << "\n]\n";
    return std::move(out_).str();
  }

private:
  void begin(char phase, int rank) {
    out_ << (some_ ? ",\n" : "") << R"({"ph":")" << phase << R"(","pid":1,"tid":)" << rank + 1;
    some_ = true;
  }

  void add(const graph_plan& plan, const graph_step& step, const graph_step_time& time) {
    if (plan.runs() == 0) return;
    begin('X', plan.rank());
    detail::text_writer name;
    name << step;
    out_ << R"(,"cat":")" << (step.waits() ? "wait" : "step") << R"(","name":)" << detail::quoted(name.str());
    out_ << R"(,"ts":)" << microseconds(time.begin.time_since_epoch());
    out_ << R"(,"dur":)" << microseconds(time.end - time.begin) << '}';
    if (step.kind == graph_step_kind::send) add_arrow('s', step.rank, step.peer, step, time.begin);
    if (step.kind == graph_step_kind::wait_received) add_arrow('f', step.peer, step.rank, step, time.end);
  }

  // Both ends give it the same number.
  void add_arrow(char phase, int from, int to, const graph_step& step, clock::time_point when) {
    begin(phase, step.rank);
    out_ << R"(,"cat":"message","name":"message","id":")" << from << '/' << to << '/' << step.tag << '"';
    out_ << R"(,"ts":)" << microseconds(when.time_since_epoch()) << (phase == 'f' ? R"(,"bp":"e"})" : "}");
  }

  std::span<const graph_plan> plans_;
  detail::text_writer out_;
  bool some_ = false;
};

}  // namespace

void print_times(std::ostream& out, const graph_plan& plan) {
  detail::text_writer lines;
  const auto runs = plan.runs() == 0 ? 1 : static_cast<clock::rep>(plan.runs());
  lines << std::fixed << std::setprecision(1) << "rank " << plan.rank() << ", " << plan.runs() << " runs, us each\n";
  clock::duration sum(0);
  for (std::size_t step = 0; step < plan.steps().size(); ++step) {
    const auto& total = plan.times()[step].total;
    lines << std::setw(10) << microseconds(total / runs) << ' ' << plan.steps()[step] << '\n';
    sum += total;
  }
  lines << std::setw(10) << microseconds(plan.total_exposed() / runs) << " exposed communication, of "
        << microseconds(sum / runs) << " in all steps\n";
  out << std::move(lines).str();
}

std::string trace_of(std::span<const graph_plan> plans) { return graph_trace_writer(plans).write(); }

}  // namespace muster
