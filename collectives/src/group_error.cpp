// SPDX-License-Identifier: BSL-1.0
#include <muster/base/text.hpp>

#include "broken_word.hpp"

namespace muster::detail {

std::string describe(const std::vector<group_member>& members) {
  text_writer out;
  for (std::size_t index = 0; index < members.size(); ++index) {
    if (index > 0) out << (index + 1 == members.size() ? " and " : ", ");
    out << "rank " << members[index].rank << " (";
    if (members[index].pid != 0) {
      out << "pid " << members[index].pid << ')';
    } else {
      out << "not joined yet)";
    }
  }
  return std::move(out).str();
}

}  // namespace muster::detail
