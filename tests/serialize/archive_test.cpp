// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/archive.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cereal/types/polymorphic.hpp>

#include <muster/base/error.hpp>
#include <muster/serialize/detail/codec.hpp>

namespace muster {

// With names of their own: cereal's registration specialises templates on them.
struct archive_test_shape {
  virtual ~archive_test_shape() = default;
  [[nodiscard]] virtual int corners() const = 0;
  template <class Archive>
  void serialize(Archive&) {}
};
struct archive_test_polygon final : archive_test_shape {
  int count = 0;
  [[nodiscard]] int corners() const override { return count; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(cereal::base_class<muster::archive_test_shape>(this), count);
  }
};

}  // namespace muster

CEREAL_REGISTER_TYPE(muster::archive_test_polygon)
CEREAL_REGISTER_POLYMORPHIC_RELATION(muster::archive_test_shape, muster::archive_test_polygon)

namespace muster::archive_test {
namespace {

std::vector<std::byte> encode(const auto& value) {
  output_archive counter;
  counter(value);
  std::vector<std::byte> bytes(counter.written());
  output_archive out(bytes);
  out(value);
  EXPECT_EQ(out.written(), bytes.size());
  return bytes;
}

template <class T>
T round_trip(const T& value) {
  const auto bytes = encode(value);
  input_archive in(bytes);
  T read{};
  in(read);
  EXPECT_EQ(in.left(), 0U);
  return read;
}

struct plain {
  int number = 0;
  double real = 0;
  friend bool operator==(const plain&, const plain&) = default;
};

struct with_serialize {
  std::string name;
  std::vector<plain> parts;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, parts);
  }
  friend bool operator==(const with_serialize&, const with_serialize&) = default;
};

// Of a class that is registered without muster's archives, which is as one that is not registered.
struct unknown_polygon final : archive_test_shape {
  [[nodiscard]] int corners() const override { return 0; }
};

TEST(Archive, AnUnregisteredClassIsRefusedWithTheHeaderToInclude) {
  using owner = std::unique_ptr<archive_test_shape>;
  const owner given = std::make_unique<unknown_polygon>();
  try {
    static_cast<void>(codec<owner>::size(given));
    FAIL() << "it was measured";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_serializable);
    EXPECT_THAT(failure.what(), testing::AllOf(testing::HasSubstr("unknown_polygon"),
                                               testing::HasSubstr("<muster/serialize/archive.hpp>")));
  }
}

TEST(Archive, KeepsArithmeticTypes) {
  EXPECT_EQ(round_trip(-5), -5);
  EXPECT_EQ(round_trip(std::uint64_t{1} << 63U), std::uint64_t{1} << 63U);
  EXPECT_EQ(round_trip(2.5L), 2.5L);
  EXPECT_EQ(round_trip(true), true);
}

TEST(Archive, KeepsStandardContainers) {
  EXPECT_EQ(round_trip(std::string("text with \0 inside", 18)), std::string("text with \0 inside", 18));
  EXPECT_EQ(round_trip(std::vector{1, 2, 3}), (std::vector{1, 2, 3}));
  EXPECT_EQ(round_trip(std::vector<bool>{true, false, true}), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(round_trip(std::map<std::string, int>{{"a", 1}, {"b", 2}}),
            (std::map<std::string, int>{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(round_trip(std::set<int>{3, 1}), (std::set<int>{1, 3}));
  EXPECT_EQ(round_trip(std::unordered_map<int, std::string>{{1, "x"}}),
            (std::unordered_map<int, std::string>{{1, "x"}}));
  EXPECT_EQ(round_trip(std::optional<std::string>("there")), "there");
  EXPECT_EQ(round_trip(std::optional<std::string>()), std::nullopt);
  EXPECT_EQ(round_trip(std::pair<int, std::string>(1, "p")), (std::pair<int, std::string>(1, "p")));
  EXPECT_EQ(round_trip(std::tuple<int, std::string>(1, "t")), (std::tuple<int, std::string>(1, "t")));
  EXPECT_EQ(std::get<std::string>(round_trip(std::variant<int, std::string>("v"))), "v");
  EXPECT_EQ(round_trip(std::array{1.5F, 2.5F}), (std::array{1.5F, 2.5F}));
  EXPECT_EQ(round_trip(std::filesystem::path("/usr/include")), std::filesystem::path("/usr/include"));
}

TEST(Archive, KeepsNestedContainers) {
  const std::vector<std::vector<std::string>> nested = {{"a", "b"}, {}, {"c"}};
  EXPECT_EQ(round_trip(nested), nested);
  const std::vector<std::vector<plain>> plains = {{{1, 1.5}, {2, 2.5}}, {}};
  EXPECT_EQ(round_trip(plains), plains);
}

TEST(Archive, KeepsPlainClassesWithoutSerialize) { EXPECT_EQ(round_trip(plain{1, 2.5}), (plain{1, 2.5})); }

TEST(Archive, KeepsClassesWithSerialize) {
  const with_serialize value{.name = "n", .parts = {{1, 2.0}, {3, 4.0}}};
  EXPECT_EQ(round_trip(value), value);
}

TEST(Archive, KeepsOwningPointers) {
  EXPECT_EQ(*round_trip(std::make_unique<int>(7)).get(), 7);
  const auto shared = std::make_shared<std::string>("s");
  const auto both = round_trip(std::pair(shared, shared));
  EXPECT_EQ(*both.first, "s");
  EXPECT_EQ(both.first, both.second) << "one object stays one";
}

TEST(Archive, KeepsPolymorphicObjects) {
  auto made = std::make_unique<archive_test_polygon>();
  made->count = 5;
  const std::unique_ptr<archive_test_shape> value = std::move(made);
  const auto read = round_trip(value);
  EXPECT_EQ(read->corners(), 5);
}

TEST(Archive, ContiguousElementsAreAlignedWhateverPrecedesThem) {
  const std::pair<std::string, std::vector<double>> value("odd", {1.5, 2.5});
  EXPECT_EQ(round_trip(value), value);
}

TEST(Archive, AShortFrameIsAnErrorAtEveryLength) {
  const auto bytes = encode(with_serialize{.name = "name", .parts = {{1, 2.0}}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto part = std::span(bytes).first(length);
    input_archive in(part);
    with_serialize read;
    EXPECT_THROW(in(read), error) << length;
  }
}

TEST(Archive, AForgedSizeIsRefusedBeforeAnythingIsAllocated) {
  auto bytes = encode(std::vector<int>{1, 2, 3});
  const std::uint64_t forged = std::uint64_t{1} << 60U;
  std::memcpy(bytes.data(), &forged, sizeof forged);
  input_archive in(bytes);
  std::vector<int> read;
  try {
    in(read);
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_serializable);
    EXPECT_THAT(failure.what(), testing::HasSubstr("1152921504606846976 elements"));
  }
  EXPECT_EQ(read.capacity(), 0U);
}

TEST(Archive, AForgedSizeOfStringsIsRefused) {
  auto bytes = encode(std::vector<std::string>{"a"});
  const std::uint64_t forged = std::uint64_t{1} << 40U;
  std::memcpy(bytes.data(), &forged, sizeof forged);
  input_archive in(bytes);
  std::vector<std::string> read;
  EXPECT_THROW(in(read), error);
}

TEST(Archive, WritingMoreThanWasCountedIsAnError) {
  std::vector<std::byte> room(4);
  output_archive out(room);
  try {
    out(std::uint64_t{1});
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_serializable);
    EXPECT_THAT(failure.what(), testing::HasSubstr("the same bytes each time"));
  }
}

}  // namespace
}  // namespace muster::archive_test
