// SPDX-License-Identifier: BSL-1.0
#include <muster/base/system_call.hpp>

#include <unistd.h>

namespace muster::detail {

namespace {

// What the two limits that users hit most often have to do with the failed call.
std::string_view advice_for(int cause) {
  switch (cause) {
    case EMFILE: return "; this process has no free descriptors: raise RLIMIT_NOFILE (ulimit -n)";
    case ENFILE: return "; the system has no free descriptors: raise fs.file-max";
    default: return "";
  }
}

}  // namespace

void throw_system_error(int cause, std::string_view name, const std::string& arguments) {
  const std::error_code code(cause, std::system_category());
  throw error(code,
              text(name, '(', arguments, ") failed in process ", ::getpid(), ": ", code.message(), advice_for(cause)));
}

}  // namespace muster::detail
