// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include <muster/process/worker_output.hpp>

namespace muster {

/// What becomes of what a pool's workers write to stdout and stderr: pool_options::output.
///
///     muster::pool pool({.output = [](const muster::worker_output& line) { journal(line.worker, line.text); }});
///     muster::pool quiet({.output = muster::output_choice::discard()});
///
/// *inherit*, the default: workers write where the program writes. *discard*, and *a sink*: the pool reads both streams
/// of every worker, in pipes, on a thread that runs no user code; the last lines go with the error of a task at which a
/// worker died (error_info::last_output). A sink is given each line, in order for each stream, on the pool's callback
/// thread, together with other callbacks; it may do anything that a callback may, and what it throws is logged. Lines
/// longer than longest_output_line come in pieces. What a worker had written when it died has been read before its
/// death is told, and the sink has been called for every line when the pool's destructor returns.
///
/// Where lines come faster than the sink takes them, at most 16 MiB or 65536 of them wait; those that come then are
/// dropped, and the line before them says how many (worker_output::dropped). Workers never wait for the sink.
/// In workers stdout is line-buffered, as on a terminal; what std::cout holds back after
/// std::ios::sync_with_stdio(false), or a library of its own, is lost when the worker dies. Processes that workers
/// start write to the same pipes; what they write after the worker's death is lost, and may end them with SIGPIPE.
///
/// Cost: two descriptors for each worker; a line that is passed on allocates once or twice.
/// Thread safety: distinct objects: safe. Shared objects: safe while nobody assigns.
class output_choice {
public:
  /// Called with each line that a worker wrote.
  using sink = std::function<void(const worker_output&)>;

  /// Workers write where the program writes, as inherit() says.
  output_choice() noexcept = default;
  /// A sink; an empty std::function is as discard().
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, output_choice> && std::constructible_from<sink, F>)
  output_choice(F&& to)  // NOLINT(google-explicit-constructor): written as the value of an option
      : to_(std::forward<F>(to)), capture_(to_ ? output_capture::lines : output_capture::last) {}

  /// Workers write where the program writes.
  [[nodiscard]] static output_choice inherit() noexcept { return {}; }
  /// The pool reads what workers write, and keeps the last lines for the error of a death.
  [[nodiscard]] static output_choice discard() { return output_choice(sink()); }

  /// The same; `mark` gets each line first, when it is read, on a thread on which it must neither wait nor throw, and
  /// may write into it. For what is built on pools, and knows more about a line than they do.
  [[nodiscard]] output_choice marked_by(std::function<void(worker_output&)> mark) const {
    auto made = *this;
    made.mark_ = std::move(mark);
    return made;
  }
  /// Returns what marked_by() was given; empty unless it was called.
  [[nodiscard]] const std::function<void(worker_output&)>& mark() const noexcept { return mark_; }

  /// Returns what the pool does: output_capture::lines where there is a sink, last for discard(), none for inherit().
  [[nodiscard]] output_capture capture() const noexcept { return capture_; }
  /// Empty unless there is a sink.
  [[nodiscard]] const sink& to() const noexcept { return to_; }

private:
  sink to_;
  std::function<void(worker_output&)> mark_;
  output_capture capture_ = output_capture::none;
};

}  // namespace muster
