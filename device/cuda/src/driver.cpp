// SPDX-License-Identifier: BSL-1.0
#include <muster/cuda/driver.hpp>

#include <dlfcn.h>

#include <muster/base/error.hpp>

namespace muster {

namespace {

constexpr const char* library_name = "libcuda.so.1";

[[noreturn]] void throw_no_device(const std::string& why) {
  throw error(errc::no_device, text("no CUDA device can be used: ", why,
                                    "; run this on a machine with an NVIDIA GPU and "
                                    "its driver, or use the device cpu"));
}

void* open_library() {
  auto* const library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const auto* const why = ::dlerror();
    throw_no_device(text("the driver's library could not be loaded (", why != nullptr ? why : library_name, ")"));
  }
  return library;
}

template <class Pointer>
Pointer find(void* library, const char* name) {
  auto* const found = ::dlsym(library, name);
  if (found == nullptr) {
    throw_no_device(text("the driver has no ", name, ", so it is older than the CUDA Toolkit ", CUDA_VERSION / 1000,
                         '.', CUDA_VERSION % 1000 / 10, " that this program was built with"));
  }
  return reinterpret_cast<Pointer>(found);
}

}  // namespace

// The name is expanded first, where it is a macro.
#define MUSTER_TEXT_OF(name) #name
#define MUSTER_EXPANDED_TEXT_OF(name) MUSTER_TEXT_OF(name)
#define MUSTER_CUDA_FIND(name, function)  \
  name(MUSTER_EXPANDED_TEXT_OF(function), \
       find<cuda_function<decltype(function)>::pointer>(library, MUSTER_EXPANDED_TEXT_OF(function))),

cuda_driver::cuda_driver(void* library) : MUSTER_CUDA_FUNCTIONS(MUSTER_CUDA_FIND) end_(library) {}

#undef MUSTER_CUDA_FIND
#undef MUSTER_EXPANDED_TEXT_OF
#undef MUSTER_TEXT_OF

std::shared_ptr<const cuda_driver> cuda_driver::load() {
  const std::shared_ptr<const cuda_driver> driver(new cuda_driver(open_library()));
  // Whatever it says, there is nothing to be had here, and nothing that is lost: containers that lack a file or a
  // module of the kernel get an unknown error, 999.
  if (const auto result = driver->init.attempt(0); result != CUDA_SUCCESS) {
    const char* why = "unknown";
    static_cast<void>(driver->error_text.attempt(result, &why));
    throw_no_device(text("cuInit says: ", why, " (", static_cast<int>(result), ')'));
  }
  int count = 0;
  driver->device_count(&count);
  if (count == 0) throw_no_device("the driver shows no device to this process; CUDA_VISIBLE_DEVICES may hide them");
  return driver;
}

std::optional<std::string> cuda_driver::problem() {
  try {
    static_cast<void>(load());
    return std::nullopt;
  } catch (const error& why) {
    return why.what();
  }
}

}  // namespace muster
