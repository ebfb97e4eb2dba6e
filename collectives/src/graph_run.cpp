// SPDX-License-Identifier: BSL-1.0
// How a plan runs: one step after the other.
#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/graph_plan.hpp>
#include <muster/device/overlap.hpp>

namespace muster {

namespace {

// To be called where an exception is being handled.
[[noreturn]] void throw_failed(int rank, const std::string& node) {
  const auto throw_as = [&](std::error_code code, const char* what) {
    std::throw_with_nested(error(code, text("graph, rank ", rank, ": computing \"", node, "\" failed: ", what)));
  };
  try {
    throw;
  } catch (const std::system_error& failure) {
    throw_as(failure.code(), text_or_none(failure.what()));
  } catch (const std::exception& failure) {
    throw_as(make_error_code(errc::remote_exception), text_or_none(failure.what()));
  } catch (...) {
    throw_as(make_error_code(errc::remote_exception), "it threw something that is no std::exception");
  }
  std::terminate();  // not reached: each of them throws
}

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& known) {
    return text_or_none(known.what());
  } catch (...) {
    return "something that is no std::exception was thrown";
  }
}

// Also by way of storages of their own.
bool shares_memory(const tensor& a, const tensor& b) {
  return (a.storage() != nullptr && a.storage() == b.storage()) || overlap_of(a, b) != overlap::none;
}

}  // namespace

void graph_plan::run(graph_link& link, deadline until) { static_cast<void>(go_on(link, &until)); }

bool graph_plan::advance(graph_link& link) { return go_on(link, nullptr); }

void graph_plan::require_ready() const {
  if (!failure_.empty()) {
    throw error(errc::cancelled, text("graph, rank ", rank_, ": the plan was to run again after a run that failed (",
                                      failure_, "): make a new plan"));
  }
  if (not_given_.empty()) return;
  throw error(errc::invalid_argument, text("graph, rank ", rank_, ": the input \"", not_given_.front(),
                                           "\" has not been given: set it before the plan runs"));
}

// Without `until`, returns false where it would have to wait.
bool graph_plan::go_on(graph_link& link, const deadline* until) {
  require_ready();
  try {
    for (; next_ < steps_.size(); ++next_) {
      auto& time = times_[next_];
      if (!begun_) time.begin = clock::now();
      begun_ = !take(next_, link, until);
      if (begun_) return false;
      time.end = clock::now();
    }
  } catch (...) {
    failure_ = text_of(std::current_exception());
    link.abort(failure_);
    throw;
  }
  finish_run();
  return true;
}

void graph_plan::finish_run() {
  for (auto& each : times_) each.total += each.end - each.begin;
  next_ = 0;
  ++runs_;
}

// Returns false if it would have to wait and may not.
bool graph_plan::take(std::size_t step, graph_link& link, const deadline* until) {
  const auto& what = steps_[step];
  auto& bound = bound_[step];
  switch (what.kind) {
    case graph_step_kind::send: bound.ticket = link.isend(buffers_[bound.buffer], what.peer, what.tag); break;
    case graph_step_kind::receive: bound.ticket = link.irecv(buffers_[bound.buffer], what.peer, what.tag); break;
    case graph_step_kind::compute: compute(step); break;
    case graph_step_kind::wait_sent:
    case graph_step_kind::wait_received: return wait(step, link, until);
    case graph_step_kind::update: update(step); break;
  }
  return true;
}

bool graph_plan::wait(std::size_t step, graph_link& link, const deadline* until) {
  const auto ticket = bound_[bound_[step].start].ticket;
  if (until == nullptr) return link.test(ticket);
  if (link.wait(ticket, *until)) return true;
  throw error(errc::timed_out, text("graph, rank ", rank_, ": the deadline passed in \"", steps_[step],
                                    "\": give more time, or see what rank ", steps_[step].peer, " does"));
}

void graph_plan::compute(std::size_t step) {
  auto& bound = bound_[step];
  for (std::size_t input = 0; input < bound.inputs.size(); ++input) {
    bound.arguments[input] = buffers_[bound.inputs[input]];
  }
  auto output = buffers_[bound.buffer];
  try {
    bound.call(output, bound.arguments);
    check_output(step, output);
  } catch (...) {
    throw_failed(rank_, steps_[step].node);
  }
  buffers_[bound.buffer] = std::move(output);
}

// Only a function that returns a tensor can have done anything wrong.
void graph_plan::check_output(std::size_t step, const tensor& output) const {
  const auto& what = steps_[step];
  const auto& place = buffers_[bound_[step].buffer];
  if (output.const_data() == place.const_data() && output.storage() == place.storage() &&
      graph_form::of(output) == what.form)
    return;
  if (!what.in_place.empty()) {
    throw error(errc::invalid_argument, "it returned a tensor, but computes in place: write the output's elements");
  }
  if (graph_form::of(output) != what.form || !output.is_contiguous()) {
    throw error(errc::invalid_argument,
                text("it returned ", graph_form::of(output), ", ", output.is_contiguous() ? "" : "not ",
                     "contiguous, but ", what.form, ", contiguous, was said when the graph was made"));
  }
  const auto& inputs = bound_[step].arguments;
  const auto is_shared = [&](const tensor& each) { return shares_memory(each, output); };
  if (std::any_of(inputs.begin(), inputs.end(), is_shared)) {
    throw error(errc::invalid_argument, "it returned elements of an input, which will be written again: clone them");
  }
  // What it returned before may be a state's by now.
  const bool is_own = shares_memory(place, output);
  if (std::count_if(buffers_.begin(), buffers_.end(), is_shared) == (is_own ? 1 : 0)) return;
  throw error(errc::invalid_argument,
              "it returned elements of another value, or what is a state's since it returned it before: clone them");
}

void graph_plan::update(std::size_t step) {
  auto& state = buffers_[bound_[step].buffer];
  auto& from = buffers_[bound_[step].inputs.front()];
  if (bound_[step].exchanges) return std::swap(state, from);
  state.copy_from(from);
}

// ---- what it took

std::chrono::nanoseconds graph_plan::exposed() const noexcept {
  std::chrono::nanoseconds sum(0);
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    if (steps_[step].waits()) sum += times_[step].end - times_[step].begin;
  }
  return sum;
}

std::chrono::nanoseconds graph_plan::total_exposed() const noexcept {
  std::chrono::nanoseconds sum(0);
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    if (steps_[step].waits()) sum += times_[step].total;
  }
  return sum;
}

}  // namespace muster
