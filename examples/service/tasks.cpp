// SPDX-License-Identifier: BSL-1.0
#include "tasks.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include <muster/base/error.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/unique_fd.hpp>

namespace service {

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 16;

struct free_hash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// Throws muster::error.
XXH128_hash_t hash_of(const std::string& path) {
  const auto open = [](const char* name) { return ::open(name, O_RDONLY | O_CLOEXEC); };
  const muster::unique_fd file(muster::system_call("open", open, path.c_str()));
  const std::unique_ptr<XXH3_state_t, free_hash> hash(XXH3_createState());
  XXH3_128bits_reset(hash.get());
  const auto piece = std::make_unique_for_overwrite<char[]>(piece_bytes);  // NOLINT: a vector would be filled first
  for (;;) {
    const auto size = muster::system_call("read", ::read, file.get(), piece.get(), piece_bytes);
    if (size == 0) return XXH3_128bits_digest(hash.get());
    XXH3_128bits_update(hash.get(), piece.get(), static_cast<std::size_t>(size));
  }
}

}  // namespace

file_hash hash_file(const std::string& path) {
  try {
    XXH128_canonical_t shown;
    XXH128_canonicalFromHash(&shown, hash_of(path));
    return {.digest = std::to_array(shown.digest)};
  } catch (const muster::error& failure) {
    return {.failure = failure.code().value()};
  }
}

void sleep_for(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

void crash() { std::abort(); }

}  // namespace service
