// SPDX-License-Identifier: BSL-1.0
#pragma once

// What runs in a worker for a chunk of a map, and what parent and worker say to each other about it.
// Layout: docs/formats/chunk.md.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/pool/detail/batch.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/queue/detail/task_call.hpp>
#include <muster/queue/detail/worker_cache.hpp>

namespace muster::detail {

/// The start of the block that all chunks of one map share; the encoded callable follows at `state_offset`.
struct job_header {
  std::atomic<std::uint32_t> stop;  ///< 1: do not begin another element
  std::uint32_t fail_fast;          ///< a failing element sets `stop`

  static constexpr std::size_t state_offset = 64;
};

/// The arguments of a chunk's task: elements [first, first + count) of a batch.
struct chunk_arguments {
  std::uint64_t job = 0;    ///< handle
  std::uint64_t batch = 0;  ///< handle
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
static_assert(sizeof(chunk_arguments) <= inline_argument_bytes);

/// The reply of a chunk's task, in the slot's line. While the chunk runs, `results` leads the parent to what is
/// finished, should the worker die.
struct chunk_reply {
  std::uint64_t finished = 0;  ///< elements with a result, from the first on
  std::uint64_t elapsed_nanoseconds = 0;
  std::uint64_t seal = 0;  ///< seal_of() all this and the arguments: shows whether they were those that were sent
  std::array<std::uint64_t, 2> reserved{};
  std::uint64_t results = 0;  ///< handle of the block with encoded results; 0: none
  std::uint64_t error = 0;    ///< handle of the block with the error of the next element; 0: none
};
static_assert(sizeof(chunk_reply) == inline_reply_bytes);
static_assert(offsetof(chunk_reply, results) == attached_handles_offset);

[[nodiscard]] std::uint64_t seal_of(const chunk_arguments& arguments, const chunk_reply& reply) noexcept;

/// Which attached block of a reply is which.
inline constexpr std::size_t results_attachment = 0;
inline constexpr std::size_t error_attachment = 1;

/// Encoded results lie in their block one after the other: the size in so many bytes, then the bytes, rounded up to
/// frame_alignment.
inline constexpr std::size_t result_prefix_bytes = frame_alignment;

/// One execution of a chunk, as far as it does not depend on types.
///
/// Thread safety: an object belongs to the worker's thread.
/// Process safety: at any instruction, results of finished elements can be found by way of the reply line.
class chunk_run {
public:
  /// Throws errc::corrupted when the arguments name no blocks.
  explicit chunk_run(task_call& call);

  [[nodiscard]] std::uint64_t first() const noexcept { return arguments_.first; }
  [[nodiscard]] std::uint64_t count() const noexcept { return arguments_.count; }
  [[nodiscard]] block_ref job() const noexcept { return block_ref::of_handle(arguments_.job); }
  [[nodiscard]] std::span<const std::byte> state() const noexcept { return job_.subspan(job_header::state_offset); }
  [[nodiscard]] std::span<const std::byte> elements() const noexcept { return batch_.subspan(header_.elements_offset); }
  /// The array of results, by index in the batch.
  [[nodiscard]] std::byte* result_array() const noexcept { return batch_.data() + header_.results_offset; }

  /// Becomes 1 when the map has been given up.
  [[nodiscard]] const std::atomic<std::uint32_t>& stop_word() const noexcept { return shared().stop; }
  /// Becomes true when this process must not begin another element; another one runs the rest.
  [[nodiscard]] static const std::atomic<bool>& process_is_unfit() noexcept;

  /// Room for the next encoded result.
  [[nodiscard]] std::span<std::byte> append_result(std::size_t bytes);

  /// Replies that the first `finished` elements have results, and that the next one failed with the exception that is
  /// being handled, if `failed`.
  void reply(std::uint64_t finished, bool failed);

private:
  [[nodiscard]] job_header& shared() const noexcept { return *reinterpret_cast<job_header*>(job_.data()); }
  [[nodiscard]] chunk_reply& line() const noexcept;
  void grow(std::size_t bytes);
  [[nodiscard]] block keep_error();

  task_call& call_;
  chunk_arguments arguments_;
  std::span<std::byte> job_;
  std::span<std::byte> batch_;
  batch_header header_;
  clock::time_point start_;
  block results_;
  std::size_t used_bytes_ = 0;
};

/// The callable of a map and its bound arguments. A worker decodes them with its first chunk, and again only if it
/// slept meanwhile: whoever has nothing to do keeps nothing.
template <class Callable, class Bound>
struct chunk_state {
  Callable callable;
  Bound bound;
};

template <bool Unpack, class F, class T>
struct element_call {
  using result = task_result<F, T>;
};
template <class F, template <class...> class Tuple, class... Parts>
struct element_call<true, F, Tuple<Parts...>> {
  using result = task_result<F, Parts...>;
};

/// What a map of `F` over elements of type `T` does in a worker. `Unpack`: elements are tuples, and the callable takes
/// their parts.
template <bool Unpack, class F, class T>
struct chunk_code {
  using sent = sent_callable<F>;
  using state = chunk_state<typename sent::callable, typename sent::bound>;
  using result = typename element_call<Unpack, F, T>::result;

  // Values are named by their places, not by std::apply, of which several functions would be made for each callable.
  static decltype(auto) invoke(state& with, T&& element) {
    return [&]<std::size_t... B>(std::index_sequence<B...>) -> decltype(auto) {
      if constexpr (Unpack) {
        return [&]<std::size_t... P>(std::index_sequence<P...>) -> decltype(auto) {
          return call_for_element(with.callable, std::as_const(std::get<B>(with.bound))...,
                                  std::get<P>(std::move(element))...);
        }(std::make_index_sequence<std::tuple_size_v<T>>{});
      } else {
        return call_for_element(with.callable, std::as_const(std::get<B>(with.bound))..., std::move(element));
      }
    }(std::make_index_sequence<std::tuple_size_v<typename sent::bound>>{});
  }

  static state decode_state(std::span<const std::byte> frame, task_call& call) {
    task_call::borrower attachments(call);
    auto values = sent::template frame<>::decode(frame, &attachments);
    return {sent::restore(values, call.functions()), sent::take_bound(values)};
  }

  template <class R>  // `result`, of which no reference can be named where it is void
  static void keep(chunk_run& run, task_call& call, std::byte* array, std::uint64_t index, const R& value) {
    if constexpr (array_element<R>) {
      std::memcpy(array + index * sizeof(R), &value, sizeof(R));
    } else {
      call.enter(task_call::step::encoding);
      codec<R>::encode(run.append_result(codec<R>::size(value)), value);
    }
  }

  static T take_element(std::span<const std::byte> elements, task_call& call, std::uint64_t index) {
    if constexpr (array_element<T>) {
      return read_element<T>(elements, index);
    } else {
      call.enter(task_call::step::decoding);
      task_call::borrower attachments(call);
      return read_element<T>(elements, index, &attachments);
    }
  }

  /// Runs in the worker.
  static void run(task_call& call) {
    chunk_run run(call);
    const auto with =
        call.cache().template find_or_make<state>(run.job(), [&] { return decode_state(run.state(), call); });
    call.enter(task_call::step::running);
    // In variables of this function: what is in memory would be read again after every element.
    const auto elements = run.elements();
    auto* const results = run.result_array();
    const auto first = run.first();
    const auto count = run.count();
    const auto& stop = run.stop_word();
    const auto& unfit = chunk_run::process_is_unfit();
    const auto may_go_on = [&] {
      return stop.load(std::memory_order_relaxed) == 0 && !unfit.load(std::memory_order_relaxed);
    };
    const task_call::element_marker marker(call);
    auto& code = *with;
    std::uint64_t finished = 0;
    try {
      for (; finished < count && may_go_on(); ++finished) {
        marker.at(first + finished);
        auto element = take_element(elements, call, first + finished);
        if constexpr (!array_element<T> || !array_element<result>) call.enter(task_call::step::running);
        if constexpr (std::is_void_v<result>) {
          invoke(code, std::move(element));
        } else {
          keep<result>(run, call, results, first + finished, invoke(code, std::move(element)));
        }
      }
    } catch (...) {
      call.end_forked_child();
      run.reply(finished, true);
      return;
    }
    run.reply(finished, false);
  }
};

}  // namespace muster::detail
