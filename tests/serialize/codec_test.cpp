// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/codec.hpp>

#include <memory>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>

namespace muster::codec_test {

struct without_default {
  explicit without_default(int value) : number(value) {}
  int number;
};

}  // namespace muster::codec_test

template <>
inline constexpr bool muster::is_plain_bytes<muster::codec_test::without_default> = true;

namespace muster::codec_test {
namespace {

template <class... Ts>
std::tuple<Ts...> round_trip(const Ts&... values) {
  alignas(frame_alignment) std::array<std::byte, 512> room{};
  const auto bytes = std::span(room).first(codec<Ts...>::size(values...));
  codec<Ts...>::encode(bytes, values...);
  return codec<Ts...>::decode(bytes);
}

TEST(Codec, TriviallyTransportableValuesHaveAFixedSize) {
  using frame = codec<int, double, char>;
  EXPECT_TRUE(frame::is_fixed);
  EXPECT_EQ(frame::fixed_bytes, sizeof(int) + sizeof(double) + 1);
  EXPECT_EQ(round_trip(1, 2.5, 'c'), (std::tuple(1, 2.5, 'c')));
}

TEST(Codec, NothingIsNoBytes) { EXPECT_EQ(codec<>::size(), 0U); }

TEST(Codec, ATypeWithoutDefaultConstructorArrives) { EXPECT_EQ(std::get<0>(round_trip(without_default(9))).number, 9); }

struct animal {
  int legs = 4;
  animal() = default;
  animal(const animal&) = default;
  animal& operator=(const animal&) = default;
  virtual ~animal() = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(legs);
  }
};
struct bird : animal {
  double wings = 2;
};

TEST(Codec, AnObjectThatIsGivenAsItsBaseIsRefused) {
  const bird given;
  const animal& as_base = given;
  try {
    (void)codec<animal>::size(as_base);
    FAIL() << "it was cut";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_serializable);
    EXPECT_NE(std::string(failure.what()).find("bird was given as its base"), std::string::npos) << failure.what();
  }
  EXPECT_NO_THROW((void)codec<animal>::size(animal()));
}

TEST(Codec, MixedValuesAreAnArchiveInOrder) {
  const auto [text, number, list] = round_trip(std::string("s"), 4, std::vector<double>{1, 2});
  EXPECT_EQ(text, "s");
  EXPECT_EQ(number, 4);
  EXPECT_EQ(list, (std::vector<double>{1, 2}));
}

TEST(Codec, MoveOnlyValuesTravel) {
  const auto owner = std::make_unique<int>(3);
  EXPECT_EQ(*std::get<0>(round_trip<std::unique_ptr<int>>(owner)), 3);
}

TEST(Codec, AShortFrameOfVariableSizeIsAnError) {
  alignas(frame_alignment) std::array<std::byte, 64> room{};
  using frame = codec<std::string>;
  frame::encode(std::span(room).first(frame::size("0123456789")), "0123456789");
  EXPECT_THROW(static_cast<void>(frame::decode(std::span(room).first(12))), error);
}

TEST(Codec, AShortFrameOfFixedSizeIsAnError) {
  alignas(frame_alignment) std::array<std::byte, 8> room{};
  using frame = codec<std::uint64_t, int>;
  EXPECT_THROW(static_cast<void>(frame::decode(room)), error);
}

}  // namespace
}  // namespace muster::codec_test
