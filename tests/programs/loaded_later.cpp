// SPDX-License-Identifier: BSL-1.0
// A library that only the parent has opened cannot run in the workers; one that the initializer opens there can.
// Arguments: the library's path.
#include <dlfcn.h>

#include <string>

#include "check.hpp"
#include "tasks_library.hpp"

namespace {

using apply_function = int (*)(const muster::pool&, int);

void* open_library(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return library;
}
void open_in_worker(const std::string& path) { open_library(path); }

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  check(argc == 2, "one argument");
  const std::string path = argv[1];
  const auto apply_lambda = reinterpret_cast<apply_function>(::dlsym(open_library(path), "apply_by_c_name"));
  check(apply_lambda != nullptr, "the library has the function");
  {
    const muster::pool pool({.workers = 1});
    expect_error(muster::errc::module_mismatch, {"has not loaded the library", "initializer"},
                 [&] { apply_lambda(pool, 4); });
    check(pool.apply([](int x) { return x + 1; }, 1) == 2, "the pool goes on");
  }
  const muster::pool pool({.workers = 1, .initializer = muster::bind_front(open_in_worker, path)});
  check(apply_lambda(pool, 4) == 5, "a lambda of a library that the workers opened");
}
