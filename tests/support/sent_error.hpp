// SPDX-License-Identifier: BSL-1.0
#pragma once

// What arrives of an exception, without another process.

#include <cstddef>
#include <vector>

#include <muster/serialize/archive.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::test {

/// `sent`, encoded and decoded.
inline error_info received(const error_info& sent) {
  output_archive counter;
  counter(sent);
  std::vector<std::byte> bytes(counter.written());
  output_archive out(bytes);
  out(sent);
  input_archive in(bytes);
  error_info decoded;
  in(decoded);
  return decoded;
}

/// What the program receives when a task calls `run`, which throws.
template <class F>
error_info received_of(const F& run) {
  error_info sent;
  try {
    run();
  } catch (...) {
    sent = capture_current_exception();
  }
  return received(sent);
}

/// What a program receives of a worker whose own worker has sent `found`, and that lets the exception pass.
inline error_info passed_on(const error_info& found) {
  return received_of([&] { found.raise(); });
}

}  // namespace muster::test
