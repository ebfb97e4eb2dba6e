// SPDX-License-Identifier: BSL-1.0
#pragma once

// The programs of this folder are tests by themselves: they must be linked in a way of their own.

#include <cstdlib>
#include <iostream>
#include <string_view>

#include <muster/base/error.hpp>

inline void check(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "failed: " << what << '\n';
  std::exit(EXIT_FAILURE);
}

/// Expects that `call` throws a muster::error with `code` whose message contains all `words`.
template <class Call>
void expect_error(muster::errc code, std::initializer_list<std::string_view> words, Call call) {
  try {
    call();
  } catch (const muster::error& caught) {
    std::cout << caught.what() << '\n';
    check(caught.code() == code, "the error's code");
    for (const auto each : words) check(std::string_view(caught.what()).find(each) != std::string_view::npos, each);
    return;
  }
  check(false, "an error is thrown");
}
