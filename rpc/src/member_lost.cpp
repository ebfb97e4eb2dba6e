// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/member_lost.hpp>

#include <muster/base/text.hpp>

namespace muster {

member_lost::member_lost(const std::string& member, const std::string& service, const std::string& what, bool has_left,
                         bool had_begun)
    : task_error(error_info(errc::peer_lost, text(what, ": the member '", member, "' has ", has_left ? "left" : "died",
                                                  had_begun ? "; the call may have begun"
                                                            : "; the call has not begun, and can be repeated"))),
      member_(member),
      service_(service),
      had_begun_(had_begun) {}

}  // namespace muster
