// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/callable.hpp>

#include <gtest/gtest.h>

namespace muster::callable_test {
namespace {

int add(int a, int b) { return a + b; }

struct greeter {
  std::string word;
  std::string operator()(const std::string& name) const { return word + ' ' + name; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(word);
  }
};

struct point {
  int x = 0;
  [[nodiscard]] int doubled() const { return 2 * x; }
};

// What send() makes, encoded, decoded and restored, as a worker would do it.
template <class Callable>
auto restored(const Callable& callable) {
  static std::array<module_entry, module_directory_size> entries{};
  static token_encoder encoder{module_directory(entries)};
  static token_decoder decoder{module_directory(entries)};
  using wire = detail::callable_wire<Callable>;
  const auto sent = wire::send(callable, encoder);
  auto received = std::apply(
      []<class... Sent>(const Sent&... each) {
        alignas(frame_alignment) std::array<std::byte, 256> room{};
        const auto bytes = std::span(room).first(codec<Sent...>::size(each...));
        codec<Sent...>::encode(bytes, each...);
        return codec<Sent...>::decode(bytes);
      },
      sent);
  return wire::restore(received, decoder);
}

TEST(Callable, FunctionPointersTravelAsTokens) { EXPECT_EQ(restored(&add)(2, 3), 5); }

struct shape {
  virtual ~shape() = default;
  [[nodiscard]] virtual int corners() const { return 0; }
};
struct colored {
  int color = 7;
  [[nodiscard]] int brightness() const { return color * 2; }
};
struct square final : shape, colored {
  [[nodiscard]] int corners() const override { return 4; }
};

TEST(Callable, PointersToMembersTravel) {
  EXPECT_EQ(std::invoke(restored(&point::doubled), point{4}), 8);
  EXPECT_EQ(std::invoke(restored(&point::x), point{4}), 4);
  EXPECT_EQ(std::invoke(restored(&shape::corners), square()), 4);  // of the object's own class
  EXPECT_EQ(std::invoke(restored(static_cast<int (square::*)() const>(&colored::brightness)), square()), 14);
  EXPECT_EQ(std::invoke(restored(static_cast<int square::*>(&colored::color)), square()), 7);
}

TEST(Callable, ANullPointerToAMemberIsRefused) {
  int (point::* const none)() const = nullptr;
  EXPECT_THROW(restored(none), error);
}

TEST(Callable, CapturelessLambdasTravelAsNothing) {
  const auto lambda = [](int x) { return x + 1; };
  EXPECT_EQ(restored(lambda)(1), 2);
  EXPECT_EQ((std::tuple_size_v<detail::callable_wire<std::remove_const_t<decltype(lambda)>>::sent>), 0U);
}

TEST(Callable, FunctorsTravelWithTheirState) { EXPECT_EQ(restored(greeter{"hello"})("you"), "hello you"); }

TEST(Callable, TrivialCapturesTravelAsBytes) {
  int offset = 10;
  EXPECT_EQ(restored(trivial_capture([offset](int x) { return x + offset; }))(5), 15);
}

TEST(Callable, FnWrapsFunctionsAndMembers) {
  EXPECT_EQ(restored(fn<&add>)(1, 1), 2);
  EXPECT_EQ(restored(fn<&point::doubled>)(point{4}), 8);
  EXPECT_EQ(restored(fn<&point::x>)(point{4}), 4);
}

TEST(Callable, BindFrontKeepsValuesAndFlattens) {
  const auto bound = bind_front(bind_front(&add, 1), 2);
  EXPECT_EQ(bound.bound, (std::tuple(1, 2)));
  const auto text = bind_front([](const std::string&) {}, "c string");
  EXPECT_EQ(std::get<0>(text.bound), "c string");
  EXPECT_TRUE((std::is_same_v<decltype(text.bound), std::tuple<std::string>>));
}

TEST(Callable, CapturesAreNotSendable) {
  int local = 0;
  const auto by_reference = [&local] { return local; };
  const auto by_value = [local] { return local; };
  const auto nothing_but_by_reference = [&] { return 0; };
  EXPECT_FALSE(sendable_callable<std::remove_const_t<decltype(by_reference)>>);
  EXPECT_FALSE(sendable_callable<std::remove_const_t<decltype(by_value)>>);
  EXPECT_FALSE(sendable_callable<std::remove_const_t<decltype(nothing_but_by_reference)>>);
  EXPECT_TRUE((sendable_callable<int (point::*)() const>));
  EXPECT_TRUE(sendable_callable<int (*)(int)>);
  EXPECT_TRUE(sendable_callable<greeter>);
}

}  // namespace
}  // namespace muster::callable_test
