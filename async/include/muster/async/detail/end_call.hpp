// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include <muster/async/detail/deferred_call.hpp>
#include <muster/async/detail/end_notice.hpp>
#include <muster/async/detail/future_handle.hpp>
#include <muster/async/detail/typed_source.hpp>

namespace muster::detail {

/// Which of a home's executors makes a call.
enum class end_place {
  steps,     ///< of the library's own steps from future to future
  callbacks  ///< of the program's functions
};

/// A call that is made once a future has ended, where its home makes such. It is made when the callback is registered,
/// and takes the value itself, so that the thread that observes the end, often the supervisor, only passes a pointer
/// on.
///
/// Thread safety: distinct objects: safe.
class end_call : public end_notice, public deferred_call {
public:
  ~end_call() override;

  /// The future is used up; when this throws (EAGAIN: no thread can be had), it is as it was.
  static void begin(std::unique_ptr<end_call> self, future_handle& of, end_place where);

protected:
  [[nodiscard]] future_handle take_source() noexcept { return std::move(of_); }

private:
  void tell() noexcept final;

  future_handle of_;
  callback_executor* where_ = nullptr;      // of the home
  std::shared_ptr<future_home> listening_;  // on its loop, until this is told
};

/// … of `Then`, with how it ended.
template <class R, class Then>
class end_function final : public end_call {
public:
  explicit end_function(Then then) : then_(std::move(then)) {}
  void run() override { then_(take_outcome<R>(take_source())); }

private:
  Then then_;
};

}  // namespace muster::detail
