// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/sent_callable.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/serialize/detail/modules.hpp>

#include "error_code.hpp"

namespace muster::sent_callable_test {
namespace {

int add(int one, int other) { return one + other; }

std::string join(const std::string& first, const std::string& second, std::string&& last) {
  return first + second + std::move(last);
}

// Sends a call, and makes it where it arrives.
template <class F, class... Args>
auto call_elsewhere(const F& f, const Args&... args) {
  using sent = detail::sent_callable<F>;
  using frame = typename sent::template frame<Args...>;
  static std::array<module_entry, module_directory_size> entries{};
  token_encoder encoder{module_directory(entries)};
  token_decoder decoder{module_directory(entries)};
  alignas(frame_alignment) std::array<std::byte, 256> room{};
  const auto bytes = sent::send(f, encoder, [&](const auto&... values) {
    const auto used = std::span(room).first(frame::size(values..., args...));
    frame::encode(used, values..., args...);
    return used;
  });
  auto values = frame::decode(bytes);
  auto callable = sent::restore(values, decoder);
  return sent::apply([&](auto&&... all) { return callable(std::forward<decltype(all)>(all)...); }, values);
}

TEST(SentCallable, IsCalledWithItsArguments) { EXPECT_EQ(call_elsewhere(&add, 2, 3), 5); }

TEST(SentCallable, IsCalledWithBoundValuesFirst) {
  const auto bound = muster::bind_front(&join, std::string("a"), std::string("b"));
  EXPECT_EQ(call_elsewhere(bound, std::string("c")), "abc");
}

TEST(SentCallable, GivesItsBoundValuesAway) {
  using sent = detail::sent_callable<decltype(muster::bind_front(&join, std::string("a")))>;
  sent::values values{function_token(), "a long text that is moved and not copied"};
  const auto* const text = std::get<1>(values).data();
  const auto bound = sent::take_bound(values);
  EXPECT_EQ(std::get<0>(bound).data(), text);
}

TEST(SentCallable, ANullPointerIsRefusedBeforeAnythingIsSent) {
  std::array<module_entry, module_directory_size> entries{};
  token_encoder encoder{module_directory(entries)};
  int (*const nothing)(int, int) = nullptr;
  bool is_sent = false;
  const auto send = [&] {
    detail::sent_callable<int (*)(int, int)>::send(nothing, encoder, [&](const auto&...) { is_sent = true; });
  };
  EXPECT_EQ(test::code_of(send), errc::invalid_argument);
  EXPECT_FALSE(is_sent);
}

}  // namespace
}  // namespace muster::sent_callable_test
