// SPDX-License-Identifier: BSL-1.0
#include "scenarios.hpp"

namespace muster::weak {

const std::vector<scenario>& all_scenarios() {
  static const auto all = [] {
    std::vector<scenario> found;
    for (const auto& some : {claim_scenarios(), wait_scenarios(), sleep_scenarios(), bell_scenarios()}) {
      found.insert(found.end(), some.begin(), some.end());
    }
    return found;
  }();
  return all;
}

}  // namespace muster::weak
