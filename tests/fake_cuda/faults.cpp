// SPDX-License-Identifier: BSL-1.0
#include "faults.hpp"

#include <cstdlib>
#include <sstream>

namespace fake_cuda {

bool is_sticky(CUresult code) {
  switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return false;
  }
}

faults::faults() {
  const auto* const asked = std::getenv("FAKE_CUDA_FAIL");
  std::istringstream all(asked != nullptr ? asked : "");
  for (std::string each; std::getline(all, each, ',');) {
    std::istringstream parts(each);
    std::string function;
    std::string code;
    std::string after;
    std::getline(parts, function, ':');
    std::getline(parts, code, ':');
    std::getline(parts, after, ':');
    add(function, static_cast<CUresult>(std::atoi(code.c_str())), std::atoi(after.c_str()));
  }
}

void faults::add(std::string function, CUresult code, int after_calls) {
  const std::scoped_lock lock(mutex_);
  waiting_.push_back({std::move(function), code, after_calls});
}

void faults::clear() {
  const std::scoped_lock lock(mutex_);
  waiting_.clear();
}

CUresult faults::next(std::string_view function) {
  const std::scoped_lock lock(mutex_);
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    if (at->function != function || at->calls_left-- > 0) continue;
    const auto code = at->code;
    waiting_.erase(at);
    return code;
  }
  return CUDA_SUCCESS;
}

}  // namespace fake_cuda
