// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/pool/detail/local_state.hpp>
#include <muster/pool/future.hpp>
#include <muster/queue/nested_end.hpp>

namespace muster::detail {

/// The source of a future for a call that a task has made to its own pool.
///
/// Thread safety: as nested_call.
template <class R>
class nested_source final : public future_source<R> {
public:
  explicit nested_source(nested_call call) : call_(std::move(call)) {}

  bool wait(deadline until) override { return call_.wait(until); }
  [[nodiscard]] bool is_done() const override { return call_.is_done(); }
  bool cancel(cancellation how) override { return call_.cancel(how); }

  outcome<R> take() override {
    if (!call_.is_done()) refuse_callbacks();
    return decode_reply<R>(call_.take());
  }

  void when_done(std::unique_ptr<end_notice> /*notice*/) override { refuse_callbacks(); }

private:
  [[noreturn]] static void refuse_callbacks() {
    throw error(errc::invalid_argument,
                "a task has no thread on which callbacks could run: get() the futures of this_pool:: instead");
  }

  nested_call call_;
};

}  // namespace muster::detail
