// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/exception_type.hpp>

#include <stdexcept>

#include <gtest/gtest.h>

namespace exception_type_test {

struct with_state : std::exception {
  int line = 0;
  std::string file;
  mutable std::string text;

  with_state() = default;
  with_state(int where, std::string in) : line(where), file(std::move(in)) {}
  [[nodiscard]] const char* what() const noexcept override {
    text = file + ':' + std::to_string(line);
    return text.c_str();
  }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(line, file);
  }
};

struct from_text : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct not_an_exception_class {
  int code = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(code);
  }
};

struct final_one final : std::exception {
  int code = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(code);
  }
};

struct cannot_be_saved : std::exception {
  template <class Archive>
  void save(Archive&) const {
    throw std::logic_error("not today");
  }
  template <class Archive>
  void load(Archive&) {}
};

}  // namespace exception_type_test

MUSTER_REGISTER_EXCEPTION(exception_type_test::with_state)
MUSTER_REGISTER_EXCEPTION(exception_type_test::from_text)
MUSTER_REGISTER_EXCEPTION(exception_type_test::not_an_exception_class)
MUSTER_REGISTER_EXCEPTION(exception_type_test::final_one)
MUSTER_REGISTER_EXCEPTION(exception_type_test::cannot_be_saved)

namespace muster::exception_types_test {
namespace {

template <class T>
error_info captured(const T& exception) {
  try {
    throw exception;  // NOLINT: thrown by value on purpose
  } catch (...) {
    return capture_current_exception();
  }
}

TEST(RegisteredException, ComesBackWithItsState) {
  try {
    captured(exception_type_test::with_state(12, "main.cpp")).raise();
    FAIL();
  } catch (const exception_type_test::with_state& caught) {
    EXPECT_EQ(caught.line, 12);
    EXPECT_EQ(caught.file, "main.cpp");
    EXPECT_NE(remote_info(caught), nullptr);
  }
}

TEST(RegisteredException, KeepsItsStateWhenItIsPassedOn) {
  error_info passed_on;
  try {
    captured(exception_type_test::with_state(12, "main.cpp")).raise();
  } catch (...) {
    passed_on = capture_current_exception();
  }
  EXPECT_THROW(passed_on.raise(), exception_type_test::with_state);
}

TEST(RegisteredException, MayBeMadeFromWhat) {
  try {
    captured(exception_type_test::from_text("words")).raise();
    FAIL();
  } catch (const exception_type_test::from_text& caught) {
    EXPECT_STREQ(caught.what(), "words");
  }
}

TEST(RegisteredException, NeedNotDeriveFromException) {
  try {
    captured(exception_type_test::not_an_exception_class{.code = 7}).raise();
    FAIL();
  } catch (const exception_type_test::not_an_exception_class& caught) {
    EXPECT_EQ(caught.code, 7);
  }
}

TEST(RegisteredException, MayBeFinal) {
  exception_type_test::final_one thrown;
  thrown.code = 8;
  try {
    captured(thrown).raise();
    FAIL();
  } catch (const exception_type_test::final_one& caught) {
    EXPECT_EQ(caught.code, 8);
    EXPECT_EQ(remote_info(caught), nullptr) << "its type does not allow it";
  }
}

TEST(RegisteredException, NestedInAnotherIsRecognised) {
  error_info found;
  try {
    try {
      throw 1;
    } catch (...) {
      std::throw_with_nested(exception_type_test::with_state(3, "f"));
    }
  } catch (...) {
    found = capture_current_exception();
  }
  EXPECT_THROW(found.raise(), exception_type_test::with_state);
  EXPECT_EQ(found.nested().size(), 1U);
}

TEST(RegisteredException, OneThatCannotBeSavedStillArrivesAsAnError) {
  const auto found = captured(exception_type_test::cannot_be_saved());
  EXPECT_EQ(found.code(), errc::remote_exception);
  EXPECT_NE(found.message().find("not today"), std::string::npos);
}

}  // namespace
}  // namespace muster::exception_types_test
