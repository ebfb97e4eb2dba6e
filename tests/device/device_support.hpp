// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/device/tensor_print.hpp>

#include "element_kinds.hpp"

namespace muster::test {

/// Expects that `call` throws muster::error of that kind, and that the text has all of `parts`.
template <class Call, class... Parts>
void expect_error(errc kind, const Call& call, const Parts&... parts) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& found) {
    EXPECT_EQ(found.code(), make_error_code(kind)) << found.what();
    for (const std::string part : std::initializer_list<const char*>{parts...}) {
      EXPECT_THAT(found.what(), testing::HasSubstr(part));
    }
  }
}

template <class Call, class... Parts>
void expect_refused(const Call& call, const Parts&... parts) {
  expect_error(errc::invalid_argument, call, parts...);
}

}  // namespace muster::test
