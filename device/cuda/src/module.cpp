// SPDX-License-Identifier: BSL-1.0
#include <muster/cuda/module.hpp>

#include <cstdint>
#include <exception>

#include <muster/base/error.hpp>

namespace muster {

void cuda_kernel::launch_with(std::size_t threads, void** arguments) const {
  const auto blocks = (threads + threads_per_block - 1) / threads_per_block;
  constexpr std::size_t most_blocks = INT32_MAX;
  if (blocks > most_blocks) {
    throw error(errc::invalid_argument, text("a kernel was to be launched with ", threads, " threads: at most ",
                                             most_blocks * threads_per_block, " are possible, let each do more"));
  }
  const cuda_device::scope current(*on_);
  on_->driver().launch(what_, static_cast<unsigned>(blocks), 1, 1, threads_per_block, 1, 1, 0, on_->compute().handle(),
                       arguments, nullptr);
}

cuda_module::cuda_module(const cuda_device& on, const void* image) : on_(on) {
  const cuda_device::scope current(on);
  on.driver().module_load(&module_, image);
}

// Whoever drops it may be in another context, or in none. In a forked child it is its parent's.
cuda_module::~cuda_module() {
  if (!on_.is_here()) return;
  try {
    const cuda_device::scope current(on_);
    static_cast<void>(on_.driver().module_unload.attempt(module_));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the context is gone, and the module with it
  }
}

cuda_kernel cuda_module::kernel(const std::string& name) const {
  const cuda_device::scope current(on_);
  CUfunction found = nullptr;
  if (on_.driver().module_function.attempt(&found, module_, name.c_str()) == CUDA_SUCCESS) return {on_, found};
  throw error(errc::invalid_argument, text("there is no kernel '", name,
                                           "' in that image: it must be an extern \"C\" "
                                           "__global__ function, compiled for this device"));
}

}  // namespace muster
