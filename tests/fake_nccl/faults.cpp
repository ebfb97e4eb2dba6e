// SPDX-License-Identifier: BSL-1.0
#include "faults.hpp"

#include <cstdlib>
#include <sstream>

namespace fake_nccl {

faults::faults() {
  const auto* const asked = std::getenv("FAKE_NCCL_FAIL");
  std::istringstream all(asked != nullptr ? asked : "");
  for (std::string each; std::getline(all, each, ',');) {
    std::istringstream parts(each);
    std::string function;
    std::string code;
    std::string after;
    std::getline(parts, function, ':');
    std::getline(parts, code, ':');
    std::getline(parts, after, ':');
    add(function, static_cast<ncclResult_t>(std::atoi(code.c_str())), std::atoi(after.c_str()));
  }
}

void faults::add(std::string function, ncclResult_t code, int after_calls) {
  const std::scoped_lock lock(mutex_);
  waiting_.push_back({std::move(function), code, after_calls});
}

ncclResult_t faults::next(std::string_view function) {
  const std::scoped_lock lock(mutex_);
  const auto counted = calls_.find(function);
  counted == calls_.end() ? static_cast<void>(calls_.emplace(function, 1)) : static_cast<void>(++counted->second);
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    if (at->function != function || at->calls_left-- > 0) continue;
    const auto code = at->code;
    waiting_.erase(at);
    return code;
  }
  return ncclSuccess;
}

std::size_t faults::calls(std::string_view function) {
  const std::scoped_lock lock(mutex_);
  const auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

faults& the_faults() {
  static auto* const all = new faults();
  return *all;
}

}  // namespace fake_nccl
