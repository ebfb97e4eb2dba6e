// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/call_retry.hpp>

#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/detail/codec.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

call_retry::call_retry(const rpc_call_options& how)
    : reasons_(how.retry_on), first_delay_(how.retry_delay), left_(how.retries) {
  if (first_delay_.count() < 0) {
    throw error(errc::invalid_argument, text("rpc_call_options::retry_delay is ", first_delay_.count(),
                                             " ns, which is less than 0: 0 is at once"));
  }
  if (reasons_.after_timeout()) {
    throw error(errc::invalid_argument,
                "rpc_call_options::retry_on contains retry::timeout(), but an attempt of a call has no time of its "
                "own: `deadline` is that of all of them");
  }
}

bool call_retry::count() noexcept {
  if (left_ == 0) return false;
  --left_;
  ++attempt_;
  return true;
}

bool call_retry::tries_again_after_loss(bool had_begun) noexcept {
  return reasons_.after_death() && (!had_begun || count());
}

// Not where the error cannot be read, or there is no memory for that.
bool call_retry::tries_again_after(reply_kind how, const taken_message& reply) noexcept {
  if (how == reply_kind::lost) return tries_again_after_loss(false);
  if (how != reply_kind::error || !reasons_.after_exceptions()) return false;
  try {
    return reasons_.after(codec<error_info>::decode_value(reply.frame().subspan(sizeof(reply_head)))) && count();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace muster::detail
