// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <ios>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster::error_code_test {
namespace {

using testing::HasSubstr;

class named_category : public std::error_category {
public:
  explicit named_category(const char* name) : name_(name) {}
  [[nodiscard]] const char* name() const noexcept override { return name_; }
  [[nodiscard]] std::string message(int value) const override {
    return std::string(name_) + ' ' + std::to_string(value);
  }
  [[nodiscard]] std::error_condition default_error_condition(int) const noexcept override {
    return std::errc::no_such_file_or_directory;
  }

private:
  const char* name_;
};

const named_category& registered() {
  static const named_category instance("registered");
  return instance;
}
const named_category first_of_two("two of a name");
const named_category second_of_two("two of a name");
const named_category namesake("registered");

template <class T>
std::vector<std::byte> encoded(const T& value) {
  output_archive counter;
  counter(value);
  std::vector<std::byte> bytes(counter.written());
  output_archive out(bytes);
  out(value);
  return bytes;
}

template <class T>
T decoded(const std::vector<std::byte>& bytes) {
  input_archive in(bytes);
  T value;
  in(value);
  return value;
}

template <class T>
T sent(const T& value) {
  return decoded<T>(encoded(value));
}

// A token names a category by its place in the program. Another build would have none like this.
std::vector<std::byte> from_another_build(std::vector<std::byte> bytes) {
  constexpr std::size_t token_at = sizeof(detail::encoded_code::kind) + sizeof(std::int32_t);
  bytes.at(token_at) ^= std::byte{1};
  return bytes;
}

struct failure {
  int line = 0;
  std::error_code code;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(line, code);
  }
};

TEST(ErrorCode, OfTheStandardLibraryIsEqualAfterCrossing) {
  for (const std::error_code code :
       {std::error_code(EACCES, std::generic_category()), std::error_code(EACCES, std::system_category()),
        make_error_code(std::io_errc::stream), make_error_code(std::future_errc::no_state), std::error_code()}) {
    EXPECT_EQ(sent(code), code);
    EXPECT_EQ(&sent(code).category(), &code.category());
  }
}

TEST(ErrorCode, OfMusterIsEqualAfterCrossing) { EXPECT_EQ(sent(make_error_code(errc::timed_out)), errc::timed_out); }

TEST(ErrorCode, OfARegisteredCategoryIsEqualAfterCrossing) {
  const std::error_code code(7, registered());
  EXPECT_EQ(sent(code), code);
  EXPECT_EQ(sent(code), std::errc::no_such_file_or_directory) << "as its category says";
}

TEST(ErrorCode, OfAStreamEqualsNoErrno) {
  EXPECT_NE(sent(make_error_code(std::io_errc::stream)), std::errc::operation_not_permitted);
}

TEST(ErrorCode, ConditionsAreEqualAfterCrossing) {
  const std::error_condition conditions[] = {std::errc::timed_out, {3, registered()}, {}};  // NOLINT(*-avoid-c-arrays)
  for (const auto& each : conditions) EXPECT_EQ(sent(each), each);
  EXPECT_EQ(sent(std::error_code(ETIMEDOUT, std::system_category())), sent(std::error_condition(std::errc::timed_out)));
}

TEST(ErrorCode, OfAnUnknownCategoryKeepsNameValueAndText) {
  const named_category unknown("unknown");
  const auto arrived = sent(std::error_code(2, unknown));
  EXPECT_STREQ(arrived.category().name(), "unknown");
  EXPECT_EQ(arrived.value(), 2);
  EXPECT_EQ(arrived.message(), "unknown 2");
  EXPECT_NE(arrived, std::errc::no_such_file_or_directory) << "nothing is known of it";
  EXPECT_NE(arrived, std::error_code(2, std::generic_category()));
}

TEST(ErrorCode, OfAnUnknownCategoryEqualsItselfOnly) {
  const named_category unknown("unknown");
  EXPECT_EQ(sent(std::error_code(2, unknown)), sent(std::error_code(2, unknown)));
  EXPECT_NE(sent(std::error_code(2, unknown)), sent(std::error_code(3, unknown)));
  EXPECT_NE(sent(std::error_code(2, unknown)), sent(std::error_code(2, named_category("other"))));
}

TEST(ErrorCode, OfAnUnknownCategoryMayBeSentOn) {
  const auto arrived = sent(std::error_code(2, named_category("unknown")));
  EXPECT_EQ(sent(arrived), arrived);
  EXPECT_EQ(sent(arrived).message(), "unknown 2");
}

TEST(ErrorCode, ComesBackToTheProcessThatKnowsItsCategory) {
  const std::error_code code(7, registered());
  const auto elsewhere = decoded<std::error_code>(from_another_build(encoded(code)));
  EXPECT_NE(elsewhere, code) << "that one is not registered";
  EXPECT_EQ(elsewhere.message(), code.message());
  EXPECT_EQ(decoded<std::error_code>(from_another_build(encoded(elsewhere))), code);
}

TEST(ErrorCode, CategoriesOfOneNameAreToldApart) {
  EXPECT_EQ(sent(std::error_code(1, first_of_two)).category(), first_of_two);
  EXPECT_EQ(sent(std::error_code(1, second_of_two)).category(), second_of_two);
  EXPECT_NE(sent(std::error_code(1, namesake)).category(), registered()) << "only the other one is registered";
  EXPECT_STREQ(sent(std::error_code(1, namesake)).category().name(), "registered");
}

TEST(ErrorCode, MayBeAPartOfOtherValues) {
  const std::error_code code(7, registered());
  EXPECT_EQ(sent(failure{.line = 3, .code = code}).code, code);
  EXPECT_EQ(sent(std::vector{code, code}), (std::vector{code, code}));
  EXPECT_EQ(sent(std::optional(code)), code);
  EXPECT_EQ((sent(std::map<int, std::error_code>{{1, code}}).at(1)), code);
  EXPECT_EQ((sent(std::array{code, code})), (std::array{code, code}));
  EXPECT_EQ((sent(std::pair(1, code))), (std::pair(1, code)));
}

TEST(ErrorCode, IsNeverSentAsItsBytes) {
  EXPECT_TRUE(transportable<std::error_code>);
  EXPECT_TRUE(transportable<std::error_condition>);
  EXPECT_FALSE(trivially_transportable<std::error_code>);
  EXPECT_FALSE(trivially_transportable<std::error_condition>);
  EXPECT_FALSE(transportable<boost::system::error_code*>);
}

TEST(ErrorCode, ALongTextIsCut) {
  class talkative : public named_category {
  public:
    talkative() : named_category("talkative") {}
    [[nodiscard]] std::string message(int) const override { return std::string(100000, 'x'); }
  };
  const talkative category;
  const auto text = sent(std::error_code(1, category)).message();
  EXPECT_GE(text.size(), 1000U);
  EXPECT_LE(text.size(), 2000U);
}

TEST(ErrorCode, AnyNumberOfUnknownCategoriesArrives) {
  for (int number = 0; number < 1000; ++number) {
    const auto name = "category " + std::to_string(number);
    EXPECT_EQ(sent(std::error_code(5, named_category(name.c_str()))).value(), 5);
  }
}

TEST(ErrorCode, AForgedKindIsAnUnknownCategory) {
  auto bytes = encoded(std::error_code(5, std::generic_category()));
  bytes.at(0) = std::byte{99};
  EXPECT_THAT(decoded<std::error_code>(bytes).message(), HasSubstr("5"));
}

}  // namespace
}  // namespace muster::error_code_test

MUSTER_REGISTER_ERROR_CATEGORY(muster::error_code_test::registered())
MUSTER_REGISTER_ERROR_CATEGORY(muster::error_code_test::first_of_two)
MUSTER_REGISTER_ERROR_CATEGORY(muster::error_code_test::second_of_two)
