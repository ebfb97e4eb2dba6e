// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/exception_type.hpp>

#include <cxxabi.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exception_twin.hpp"
#include "sent_error.hpp"

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

struct parse_error : std::runtime_error {
  int line = 0;

  parse_error() : std::runtime_error("") {}
  parse_error(const std::string& what, int where) : std::runtime_error(what), line(where) {}
  template <class Archive>
  void serialize(Archive& archive) {
    archive(line);
  }
};

struct tagged_error : parse_error {  // not registered
  tagged_error() : parse_error("tagged", 8) {}
};

struct prefixed : std::runtime_error {
  explicit prefixed(const std::string& what) : std::runtime_error("db: " + what) {}
};

class bracketed : public std::exception {
public:
  explicit bracketed(const std::string& what) : what_("<" + what + ">") {}
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

private:
  std::string what_;
};

struct without_text : std::logic_error {
  without_text() : std::logic_error("always the same") {}
};

struct made_from_text : std::runtime_error {
  int line = 0;

  using std::runtime_error::runtime_error;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(line);
  }
};

struct coded : std::system_error {
  std::string host;

  coded() = default;
  coded(std::error_code code, std::string at) : std::system_error(code, "connecting"), host(std::move(at)) {}
  template <class Archive>
  void serialize(Archive& archive) {
    archive(host);
  }
};

struct on_file : std::filesystem::filesystem_error {
  int line = 0;

  on_file() : filesystem_error("", std::error_code()) {}
  on_file(const std::string& path, int where)
      : filesystem_error("reading", path, std::make_error_code(std::errc::io_error)), line(where) {}
  template <class Archive>
  void serialize(Archive& archive) {
    archive(line);
  }
};

struct decorated : std::runtime_error {
  int line = 0;
  mutable std::string whole{};

  decorated() : std::runtime_error("") {}
  decorated(const std::string& what, int where) : std::runtime_error(what), line(where) {}
  [[nodiscard]] const char* what() const noexcept override {
    whole = std::string(std::runtime_error::what()) + " in line " + std::to_string(line);
    return whole.c_str();
  }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(line);
  }
};

struct shared_state {
  int number = 1;
};
struct left : virtual shared_state {};
struct right : virtual shared_state {};
struct with_virtual_base : std::exception, left, right {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(number);
  }
};

struct without_default {
  explicit without_default(int value) : number(value) {}
  int number;
};
struct with_strict_virtual_base : std::runtime_error, virtual without_default {
  explicit with_strict_virtual_base(const std::string& what) : without_default(3), std::runtime_error(what) {}
  template <class Archive>
  void serialize(Archive& archive) {
    archive(number);
  }
};

struct virtually_standard : virtual std::runtime_error {
  int line = 0;

  virtually_standard() : std::runtime_error("") {}
  virtually_standard(const virtually_standard&) = default;
  virtually_standard& operator=(const virtually_standard&) = default;
  virtually_standard(const std::string& what, int where) : std::runtime_error(what), line(where) {}
  template <class Archive>
  void serialize(Archive& archive) {
    archive(line);
  }
};

struct final_what : std::exception {
  std::string text;

  final_what() = default;
  explicit final_what(std::string what) : text(std::move(what)) {}
  [[nodiscard]] const char* what() const noexcept final { return text.c_str(); }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text);
  }
};

class private_what : public std::exception {
public:
  private_what() = default;
  explicit private_what(std::string what) : text_(std::move(what)) {}
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text_);
  }

private:
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

  std::string text_;
};

struct of_muster : muster::error {
  using error::error;
};

struct of_files : std::filesystem::filesystem_error {
  using filesystem_error::filesystem_error;
};

struct of_streams : std::ios_base::failure {
  using failure::failure;
};

struct of_the_system : std::system_error {
  using system_error::system_error;
};

struct nesting_itself : std::runtime_error, std::nested_exception {
  nesting_itself() : std::runtime_error("") {}
  explicit nesting_itself(const std::string& what) : std::runtime_error(what) {}
  template <class Archive>
  void serialize(Archive&) {}
};

struct cannot_be_loaded : std::runtime_error {
  cannot_be_loaded() : std::runtime_error("what it says") {}
  template <class Archive>
  void save(Archive&) const {}
  template <class Archive>
  void load(Archive&) {
    throw std::logic_error("not here");
  }
};

struct throws_a_number : std::runtime_error {
  throws_a_number() : std::runtime_error("what it says") {}
  template <class Archive>
  void save(Archive&) const {
    throw 5;
  }
  template <class Archive>
  void load(Archive&) {}
};

struct both : parse_error, coded {
  both() = default;
};

class of_another_library : public std::runtime_error {
public:
  of_another_library(int number, const char* what) : std::runtime_error(what), number_(number) {}
  [[nodiscard]] int number() const noexcept { return number_; }

private:
  int number_;
};

}  // namespace exception_type_test

template <>
struct muster::exception_encoding<exception_type_test::of_another_library> {
  static void save(output_archive& out, const ::exception_type_test::of_another_library& thrown) {
    out(thrown.number());
  }
  static ::exception_type_test::of_another_library load(input_archive& in, const error_info& /*info*/) {
    int number = 0;
    in(number);
    return {number, "restored afterwards"};
  }
};

MUSTER_REGISTER_EXCEPTION(exception_type_test::of_another_library)
MUSTER_REGISTER_EXCEPTION(exception_type_test::with_state)
MUSTER_REGISTER_EXCEPTION(exception_type_test::from_text)
MUSTER_REGISTER_EXCEPTION(exception_type_test::not_an_exception_class)
MUSTER_REGISTER_EXCEPTION(exception_type_test::final_one)
MUSTER_REGISTER_EXCEPTION(exception_type_test::cannot_be_saved)
MUSTER_REGISTER_EXCEPTION(exception_type_test::parse_error)
MUSTER_REGISTER_EXCEPTION(exception_type_test::prefixed)
MUSTER_REGISTER_EXCEPTION(exception_type_test::bracketed)
MUSTER_REGISTER_EXCEPTION(exception_type_test::without_text)
MUSTER_REGISTER_EXCEPTION(exception_type_test::made_from_text)
MUSTER_REGISTER_EXCEPTION(exception_type_test::coded)
MUSTER_REGISTER_EXCEPTION(exception_type_test::on_file)
MUSTER_REGISTER_EXCEPTION(exception_type_test::decorated)
MUSTER_REGISTER_EXCEPTION(exception_type_test::with_virtual_base)
MUSTER_REGISTER_EXCEPTION(exception_type_test::with_strict_virtual_base)
MUSTER_REGISTER_EXCEPTION(exception_type_test::virtually_standard)
MUSTER_REGISTER_EXCEPTION(exception_type_test::final_what)
MUSTER_REGISTER_EXCEPTION(exception_type_test::private_what)
MUSTER_REGISTER_EXCEPTION(exception_type_test::of_muster)
MUSTER_REGISTER_EXCEPTION(exception_type_test::of_files)
MUSTER_REGISTER_EXCEPTION(exception_type_test::of_streams)
MUSTER_REGISTER_EXCEPTION(exception_type_test::of_the_system)
MUSTER_REGISTER_EXCEPTION(exception_type_test::nesting_itself)
MUSTER_REGISTER_EXCEPTION(exception_type_test::cannot_be_loaded)
MUSTER_REGISTER_EXCEPTION(exception_type_test::throws_a_number)

namespace muster::exception_type_test {
namespace {

using namespace ::exception_type_test;  // NOLINT(google-build-using-namespace)
using test::passed_on;
using test::received_of;
using testing::HasSubstr;

// Of the same name as the one in exception_twin.cpp.
struct twin : std::exception {
  std::string text;

  twin() = default;
  explicit twin(std::string what) : text(std::move(what)) {}
  [[nodiscard]] const char* what() const noexcept override { return text.c_str(); }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text);
  }
};

// Registered here, and of the name of one that is not.
struct unregistered_twin : std::exception {
  int secret = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(secret);
  }
};

template <class T>
error_info captured(const T& exception) {
  return received_of([&] { throw exception; });  // NOLINT: thrown by value on purpose
}

// What arrives over two levels of pools.
template <class T>
error_info captured_twice(const T& exception) {
  return passed_on(captured(exception));
}

// The very type, whatever its name: code of Clang's catches types of unnamed namespaces by their names.
const std::type_info* thrown_by(const error_info& found) {
  try {
    found.raise();
  } catch (...) {
    return ::abi::__cxa_current_exception_type();
  }
}

// Calls `look` with the exception, as it arrives directly and over two levels.
template <class T, class Look>
void expect_arrives(const T& exception, const Look& look) {
  for (const auto& found : {captured(exception), captured_twice(exception)}) {
    try {
      found.raise();
    } catch (const T& caught) {
      look(caught);
      continue;
    } catch (const std::exception& caught) {
      ADD_FAILURE() << found.type_name() << " is caught as " << typeid(caught).name() << ": " << caught.what();
    }
  }
}

// That it arrives with the same text.
template <class T>
void expect_keeps_text(const T& exception) {
  expect_arrives(exception, [&](const T& caught) {
    EXPECT_STREQ(caught.what(), exception.what());
    EXPECT_EQ(remote_info(caught)->message(), exception.what());
  });
}

TEST(RegisteredException, ComesBackWithItsState) {
  try {
    captured(with_state(12, "main.cpp")).raise();
    FAIL();
  } catch (const with_state& caught) {
    EXPECT_EQ(caught.line, 12);
    EXPECT_EQ(caught.file, "main.cpp");
    EXPECT_NE(remote_info(caught), nullptr);
  }
}

TEST(RegisteredException, KeepsItsStateWhenItIsPassedOn) {
  error_info passed_on;
  try {
    captured(with_state(12, "main.cpp")).raise();
  } catch (...) {
    passed_on = capture_current_exception();
  }
  EXPECT_THROW(passed_on.raise(), with_state);
}

TEST(RegisteredException, MayBeMadeFromWhat) {
  try {
    captured(from_text("words")).raise();
    FAIL();
  } catch (const from_text& caught) {
    EXPECT_STREQ(caught.what(), "words");
  }
}

TEST(RegisteredException, NeedNotDeriveFromException) {
  try {
    captured(not_an_exception_class{.code = 7}).raise();
    FAIL();
  } catch (const not_an_exception_class& caught) {
    EXPECT_EQ(caught.code, 7);
  }
}

TEST(RegisteredException, MayBeFinal) {
  final_one thrown;
  thrown.code = 8;
  try {
    captured(thrown).raise();
    FAIL();
  } catch (const final_one& caught) {
    EXPECT_EQ(caught.code, 8);
    EXPECT_NE(remote_info(caught), nullptr);
  }
}

TEST(RegisteredException, NestedInAnotherIsRecognised) {
  error_info found;
  try {
    try {
      throw 1;
    } catch (...) {
      std::throw_with_nested(with_state(3, "f"));
    }
  } catch (...) {
    found = capture_current_exception();
  }
  EXPECT_THROW(found.raise(), with_state);
  EXPECT_EQ(found.nested().size(), 1U);
}

TEST(RegisteredException, KeepsTheTextOfItsStandardBase) {
  expect_arrives(parse_error("no brace", 12), [](const parse_error& caught) {
    EXPECT_STREQ(caught.what(), "no brace");
    EXPECT_EQ(caught.line, 12);
    EXPECT_EQ(typeid(caught), typeid(parse_error)) << "not of a class derived from it";
  });
}

TEST(RegisteredException, KeepsAPrefixOfItsConstructorOnce) {
  expect_keeps_text(prefixed("lost"));
  expect_keeps_text(prefixed("db: "));
  expect_keeps_text(bracketed("lost"));
  expect_keeps_text(bracketed(""));
  expect_keeps_text(bracketed("<>"));
}

TEST(RegisteredException, NeedsNoSerializeWithoutMembers) {
  expect_keeps_text(without_text());
  expect_keeps_text(from_text("a"));
}

TEST(RegisteredException, MayBeConstructedFromTextAndHaveMembers) {
  made_from_text thrown("text");
  thrown.line = 4;
  expect_keeps_text(thrown);
  expect_arrives(thrown, [](const made_from_text& caught) { EXPECT_EQ(caught.line, 4); });
}

TEST(RegisteredException, KeepsTheCodeOfItsStandardBase) {
  const coded thrown(std::make_error_code(std::errc::connection_refused), "host");
  expect_keeps_text(thrown);
  expect_arrives(thrown, [](const coded& caught) {
    EXPECT_EQ(caught.code(), std::errc::connection_refused);
    EXPECT_EQ(caught.host, "host");
  });
}

TEST(RegisteredException, KeepsThePathsOfItsStandardBase) {
  expect_keeps_text(on_file("/a/b", 3));
  expect_arrives(on_file("/a/b", 3), [](const on_file& caught) {
    EXPECT_EQ(caught.path1(), "/a/b");
    EXPECT_EQ(caught.code(), std::errc::io_error);
    EXPECT_EQ(caught.line, 3);
  });
}

TEST(RegisteredException, MakesItsOwnTextFromItsStandardBases) { expect_keeps_text(decorated("no brace", 7)); }

TEST(RegisteredException, MayHaveAFinalWhat) { expect_keeps_text(final_what("the end")); }

TEST(RegisteredException, MayHaveAPrivateWhat) {
  expect_arrives(private_what("the end"), [](const private_what& caught) {
    EXPECT_STREQ(static_cast<const std::exception&>(caught).what(), "the end");
  });
}

TEST(RegisteredException, MayHaveTheConstructorsOfItsBase) {
  const auto code = std::make_error_code(std::errc::io_error);
  expect_keeps_text(of_muster(errc::overflow, "too much"));
  expect_arrives(of_muster(errc::overflow, "too much"),
                 [](const of_muster& caught) { EXPECT_EQ(caught.code(), errc::overflow); });
  expect_keeps_text(of_files("reading", "/a", "/b", code));
  expect_arrives(of_files("reading", "/a", "/b", code), [&](const of_files& caught) {
    EXPECT_EQ(caught.path2(), "/b");
    EXPECT_EQ(caught.code(), code);
  });
  expect_keeps_text(of_streams("reading", code));
  expect_arrives(of_streams("reading", code), [&](const of_streams& caught) { EXPECT_EQ(caught.code(), code); });
  expect_keeps_text(of_the_system(code, "reading"));
  expect_arrives(of_the_system(code, "reading"), [&](const of_the_system& caught) { EXPECT_EQ(caught.code(), code); });
}

TEST(RegisteredException, KeepsTheStateOfVirtualBases) {
  with_virtual_base thrown;
  thrown.number = 17;
  expect_arrives(thrown, [](const with_virtual_base& caught) { EXPECT_EQ(caught.number, 17); });
  with_strict_virtual_base strict("text");
  strict.number = 18;
  expect_keeps_text(strict);
  expect_arrives(strict, [](const with_strict_virtual_base& caught) { EXPECT_EQ(caught.number, 18); });
  expect_keeps_text(virtually_standard("text", 3));
}

TEST(RegisteredException, OfAnotherLibraryHasAnEncoding) {
  expect_keeps_text(of_another_library(3, "text"));
  expect_arrives(of_another_library(3, "text"),
                 [](const of_another_library& caught) { EXPECT_EQ(caught.number(), 3); });
}

TEST(RegisteredException, IsForgottenWithItsRegistration) {
  struct passing : std::runtime_error {
    passing() : std::runtime_error("passing") {}
  };
  {
    const detail::registered_exception<passing> here;
    EXPECT_NE(exception_type::find(typeid(passing)), nullptr);
    EXPECT_THROW(captured(passing()).raise(), passing);
  }
  EXPECT_EQ(exception_type::find(typeid(passing)), nullptr);
  try {
    captured(passing()).raise();
    FAIL();
  } catch (const passing&) {
    FAIL() << "it is not registered any more";
  } catch (const std::runtime_error& caught) {
    EXPECT_STREQ(caught.what(), "passing");
  }
}

TEST(RegisteredException, MayBeRegisteredTwice) {
  const detail::registered_exception<parse_error> again;
  expect_keeps_text(parse_error("twice", 2));
}

TEST(RegisteredException, IsThrownAsItself) {
  expect_arrives(with_state(1, "f"), [](const with_state& caught) { EXPECT_EQ(typeid(caught), typeid(with_state)); });
  expect_arrives(prefixed("lost"), [](const prefixed& caught) { EXPECT_EQ(typeid(caught), typeid(prefixed)); });
}

TEST(RegisteredException, NestsAsItDidInTheWorker) {
  const auto run = [] {
    try {
      throw parse_error("inner", 5);
    } catch (...) {
      throw nesting_itself("outer");
    }
  };
  for (const auto& found : {received_of(run), passed_on(received_of(run))}) {
    try {
      found.raise();
      FAIL();
    } catch (const nesting_itself& caught) {
      EXPECT_STREQ(caught.what(), "outer");
      EXPECT_THROW(std::rethrow_if_nested(caught), parse_error);
    }
  }
}

TEST(RegisteredException, WithoutAnInnerOneTakesNoneOfTheCallers) {
  const auto alone = captured(nesting_itself("alone"));
  try {
    throw std::out_of_range("the caller's");
  } catch (...) {
    try {
      alone.raise();
      FAIL();
    } catch (const nesting_itself& caught) {
      EXPECT_EQ(caught.nested_ptr(), nullptr);
    }
  }
}

TEST(RegisteredException, InnerOnesArriveWithTheirState) {
  try {
    received_of([] {
      try {
        throw parse_error("inner", 5);
      } catch (...) {
        std::throw_with_nested(coded(std::make_error_code(std::errc::timed_out), "host"));
      }
    }).raise();
    FAIL();
  } catch (const coded& outer) {
    EXPECT_EQ(outer.code(), std::errc::timed_out);
    try {
      std::rethrow_if_nested(outer);
      FAIL();
    } catch (const parse_error& inner) {
      EXPECT_EQ(inner.line, 5);
      EXPECT_STREQ(inner.what(), "inner");
    }
  }
}

TEST(RegisteredException, OfOneNameInTwoUnnamedNamespacesAreTwo) {
  const auto mine = captured(twin("this one"));
  EXPECT_EQ(thrown_by(mine), &typeid(twin));
  EXPECT_TRUE(mine.is_of(typeid(twin)));
  EXPECT_FALSE(mine.is_of(type_of_other_twin()));

  const auto others = received_of([] { throw_other_twin("that one"); });
  EXPECT_EQ(thrown_by(others), &type_of_other_twin());
  EXPECT_FALSE(others.is_of(typeid(twin)));
  EXPECT_TRUE(others.is_of(type_of_other_twin()));
}

TEST(RegisteredException, IsNotTakenForAnUnregisteredOneOfItsName) {
  const auto found = received_of(throw_other_stranger);
  EXPECT_THROW(found.raise(), remote_exception);
  EXPECT_THAT(found.type_name(), HasSubstr("unregistered_twin"));
}

TEST(UnregisteredException, IsCaughtByItsRegisteredBase) {
  for (const auto& found : {captured(tagged_error()), captured_twice(tagged_error())}) {
    try {
      found.raise();
      FAIL();
    } catch (const parse_error& caught) {
      EXPECT_EQ(caught.line, 8);
      EXPECT_STREQ(caught.what(), "tagged");
      ASSERT_NE(remote_info(caught), nullptr);
      EXPECT_THAT(remote_info(caught)->type_name(), HasSubstr("tagged_error"));
    }
  }
}

TEST(UnregisteredException, IsCaughtByItsStandardBase) {
  struct slow : std::overflow_error {
    slow() : std::overflow_error("of the base") {}
    [[nodiscard]] const char* what() const noexcept override { return "of itself"; }
  };
  struct no_room : std::bad_alloc {
    [[nodiscard]] const char* what() const noexcept override { return "no room"; }
  };
  struct refused : std::system_error {
    refused() : std::system_error(std::make_error_code(std::errc::connection_refused), "connecting") {}
  };
  for (const auto& found : {captured(slow()), captured_twice(slow())}) {
    try {
      found.raise();
    } catch (const std::overflow_error& caught) {
      EXPECT_STREQ(caught.what(), "of itself");
      EXPECT_THAT(remote_info(caught)->type_name(), HasSubstr("slow"));
    }
  }
  for (const auto& found : {captured(no_room()), captured_twice(no_room())}) {
    try {
      found.raise();
    } catch (const std::bad_alloc& caught) {
      EXPECT_STREQ(caught.what(), "no room");
    }
  }
  for (const auto& found : {captured(refused()), captured_twice(refused())}) {
    try {
      found.raise();
    } catch (const std::system_error& caught) {
      EXPECT_EQ(caught.code(), std::errc::connection_refused);
      EXPECT_STREQ(caught.what(), refused().what());
    }
  }
}

TEST(UnregisteredException, WithTwoStandardBasesIsCaughtByOneOfThem) {
  // Its std::runtime_error is ambiguous, so that only parse_error and coded catch it.
  EXPECT_THROW(captured(both()).raise(), parse_error);
}

TEST(RegisteredException, ThatCannotBeSavedArrivesAsRemoteExceptionWithTheReason) {
  for (const auto& found : {captured(cannot_be_saved()), captured_twice(cannot_be_saved())}) {
    EXPECT_EQ(found.code(), errc::remote_exception);
    EXPECT_THAT(found.type_name(), HasSubstr("cannot_be_saved"));
    EXPECT_EQ(found.message(), cannot_be_saved().what());
    EXPECT_EQ(found.save_failure(), "not today");
    try {
      found.raise();
      FAIL();
    } catch (const remote_exception& caught) {
      EXPECT_THAT(caught.what(), HasSubstr("the exception could not be restored: not today"));
    }
  }
}

TEST(RegisteredException, ThatCannotBeRestoredArrivesAsRemoteExceptionWithTheReason) {
  try {
    captured(cannot_be_loaded()).raise();
    FAIL();
  } catch (const remote_exception& caught) {
    EXPECT_EQ(caught.remote_what(), "what it says");
    EXPECT_EQ(caught.info().save_failure(), "not here");
  }
  EXPECT_THROW(captured(throws_a_number()).raise(), remote_exception);
}

}  // namespace
}  // namespace muster::exception_type_test

MUSTER_REGISTER_EXCEPTION(muster::exception_type_test::twin)
MUSTER_REGISTER_EXCEPTION(muster::exception_type_test::unregistered_twin)
