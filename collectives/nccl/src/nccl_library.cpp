// SPDX-License-Identifier: BSL-1.0
#include <muster/nccl/nccl_library.hpp>

#include <dlfcn.h>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

constexpr const char* library_name = "libnccl.so.2";

[[noreturn]] void throw_no_library(const std::string& why) {
  throw error(errc::no_device, text("NCCL cannot be used: ", why,
                                    "; install NCCL 2.18 or newer (NVIDIA's package libnccl2) "
                                    "where the loader finds it, or in a folder that LD_LIBRARY_PATH names"));
}

void* open_library() {
  auto* const library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const auto* const why = ::dlerror();
    throw_no_library(text("its library could not be loaded (", why != nullptr ? why : library_name, ")"));
  }
  return library;
}

template <class Pointer>
Pointer find(void* library, const char* name) {
  auto* const found = ::dlsym(library, name);
  if (found == nullptr)
    throw_no_library(text("the ", library_name, " that is found has no ", name, ", so it is too old"));
  return reinterpret_cast<Pointer>(found);
}

}  // namespace

#define MUSTER_NCCL_FIND(name, function) \
  name(#function, find<nccl_function<decltype(function)>::pointer>(library, #function), describe_),

nccl_library::nccl_library(void* library)
    : describe_(find<decltype(describe_)>(library, "ncclGetErrorString")),
      MUSTER_NCCL_FUNCTIONS(MUSTER_NCCL_FIND) version_number_(0) {
  version(&version_number_);
}

#undef MUSTER_NCCL_FIND

std::string nccl_library::version_text(int number) {
  return text(number / 10000, '.', number / 100 % 100, '.', number % 100);
}

std::shared_ptr<const nccl_library> nccl_library::load() {
  std::shared_ptr<const nccl_library> library(new nccl_library(open_library()));
  const auto found = library->version_number();
  if (found < least_version) {
    throw_no_library(text("the ", library_name, " that is found is of version ", version_text(found), ", and ",
                          version_text(least_version), " is needed"));
  }
  return library;
}

std::optional<std::string> nccl_library::problem() {
  try {
    static_cast<void>(load());
    return std::nullopt;
  } catch (const error& why) {
    return why.what();
  }
}

}  // namespace muster
