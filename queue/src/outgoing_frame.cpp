// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/outgoing_frame.hpp>

#include <muster/memory/detail/arena.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

std::uint64_t attachment_lender::attach(const shared_block& what) {
  if (used_ == count_) {
    throw error(errc::not_serializable, text("encoding sent more than the ", count_,
                                             " shared blocks along that counting had found: a serialize "
                                             "function must write the same values each time it is called"));
  }
  const auto name = memory_.name_of(what);
  bytes_ += what.size();
  kept_.set(used_++, what);
  return name;
}

}  // namespace muster
