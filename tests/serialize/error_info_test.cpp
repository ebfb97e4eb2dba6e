// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/error_info.hpp>

#include <csignal>
#include <exception>
#include <filesystem>
#include <functional>
#include <ios>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/serialize/archive.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster::error_info_test {
namespace {

using testing::HasSubstr;

error_info sent_to_another_process(const error_info& sent) {
  output_archive counter;
  counter(sent);
  std::vector<std::byte> bytes(counter.written());
  output_archive out(bytes);
  out(sent);
  input_archive in(bytes);
  error_info received;
  in(received);
  return received;
}

// What arrives in the parent when a task throws `exception`.
template <class T>
error_info captured(const T& exception) {
  error_info sent;
  try {
    throw exception;  // NOLINT: thrown by value on purpose
  } catch (...) {
    sent = capture_current_exception();
  }
  auto received = sent_to_another_process(sent);
  received.set_place({.task = 17, .label = "resize", .element = 3, .attempt = 2, .worker = 1, .pid = 4711});
  return received;
}

template <class T>
void expect_comes_back_as_itself(const T& exception) {
  try {
    captured(exception).raise();
    FAIL();
  } catch (const T& caught) {
    EXPECT_STREQ(caught.what(), exception.what());
    const auto* info = remote_info(caught);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->place().worker, 1);
    EXPECT_EQ(info->place().pid, 4711);
  }
}

TEST(ErrorInfo, StandardExceptionsComeBackAsThemselves) {
  expect_comes_back_as_itself(std::logic_error("1"));
  expect_comes_back_as_itself(std::invalid_argument("2"));
  expect_comes_back_as_itself(std::domain_error("3"));
  expect_comes_back_as_itself(std::length_error("4"));
  expect_comes_back_as_itself(std::out_of_range("5"));
  expect_comes_back_as_itself(std::runtime_error("6"));
  expect_comes_back_as_itself(std::range_error("7"));
  expect_comes_back_as_itself(std::overflow_error("8"));
  expect_comes_back_as_itself(std::underflow_error("9"));
  expect_comes_back_as_itself(std::bad_alloc());
  expect_comes_back_as_itself(std::bad_array_new_length());
  expect_comes_back_as_itself(std::bad_cast());
  expect_comes_back_as_itself(std::bad_typeid());
  expect_comes_back_as_itself(std::bad_function_call());
  expect_comes_back_as_itself(std::bad_optional_access());
  expect_comes_back_as_itself(std::bad_variant_access());
  expect_comes_back_as_itself(std::bad_weak_ptr());
  expect_comes_back_as_itself(std::bad_exception());
  expect_comes_back_as_itself(std::system_error(ENOENT, std::generic_category(), "opening"));
  expect_comes_back_as_itself(std::ios_base::failure("stream"));
  expect_comes_back_as_itself(std::filesystem::filesystem_error("copy", "/a", "/b", {EACCES, std::generic_category()}));
  expect_comes_back_as_itself(error(errc::timed_out, "ours"));
}

TEST(ErrorInfo, CodesSurvive) {
  try {
    captured(std::system_error(EACCES, std::system_category(), "x")).raise();
  } catch (const std::system_error& caught) {
    EXPECT_EQ(caught.code(), std::errc::permission_denied);
    EXPECT_EQ(caught.code().category(), std::system_category());
  }
  try {
    captured(error(errc::overflow, "x")).raise();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::overflow);
  }
}

struct unknown_to_muster : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(ErrorInfo, AnUnregisteredTypeArrivesAsRemoteException) {
  try {
    captured(unknown_to_muster("what happened")).raise();
    FAIL();
  } catch (const remote_exception& caught) {
    EXPECT_THAT(caught.type_name(), HasSubstr("unknown_to_muster"));
    EXPECT_EQ(caught.remote_what(), "what happened");
    EXPECT_THAT(caught.what(),
                testing::AllOf(HasSubstr("task 17 'resize', element 3, attempt 2, worker 1 (process 4711)"),
                               HasSubstr("unknown_to_muster"), HasSubstr("what happened")));
    EXPECT_EQ(caught.code(), errc::remote_exception);
  }
}

// What the next process gets that lets it pass.
error_info passed_on(const error_info& received) {
  error_info sent;
  try {
    received.raise();
  } catch (...) {
    sent = capture_current_exception();
  }
  return sent_to_another_process(sent);
}

TEST(ErrorInfo, AnExceptionStaysWhatItIsThroughAnyNumberOfProcesses) {
  EXPECT_THROW(passed_on(passed_on(captured(std::out_of_range("no 7")))).raise(), std::out_of_range);
  try {
    passed_on(captured(error(errc::overflow, "x"))).raise();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::overflow);
    EXPECT_STREQ(caught.what(), "x");
  }
  const auto unknown = passed_on(passed_on(captured(unknown_to_muster("what happened"))));
  EXPECT_THAT(unknown.type_name(), HasSubstr("unknown_to_muster"));
  EXPECT_EQ(unknown.message(), "what happened");
  EXPECT_THROW(passed_on(error_info::died(exit_status::killed(9), "worker 1")).raise(), remote_exception)
      << "this one's worker lives";
}

TEST(ErrorInfo, AnythingThrownArrives) {
  EXPECT_EQ(captured(42).type_name(), "int");
  EXPECT_EQ(captured(std::string("text")).message(), "text");
  const char* const literal = "literal";
  EXPECT_EQ(captured(literal).message(), "literal");
  EXPECT_THROW(captured(42).raise(), remote_exception);
}

struct without_text : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

TEST(ErrorInfo, WhatHasNoTextArrives) {
  const char* const nothing = nullptr;
  EXPECT_EQ(captured(nothing).message(), "(no text)");
  EXPECT_EQ(captured(nullptr).message(), "(no text)");
  EXPECT_EQ(captured(without_text()).message(), "(no text)");
  EXPECT_THAT(captured(without_text()).type_name(), HasSubstr("without_text"));
}

TEST(ErrorInfo, NestedExceptionsArriveAsAChain) {
  error_info found;
  try {
    try {
      throw std::out_of_range("inner");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("outer"));
    }
  } catch (...) {
    found = capture_current_exception();
  }
  EXPECT_EQ(found.type_name(), "std::runtime_error");
  ASSERT_EQ(found.nested().size(), 1U);
  EXPECT_EQ(found.nested().front().type_name, "std::out_of_range");
  EXPECT_EQ(found.nested().front().message, "inner");
  EXPECT_THAT(found.describe(), HasSubstr("caused by std::out_of_range: inner"));
  EXPECT_THROW(found.raise(), std::runtime_error);
  ASSERT_EQ(passed_on(found).nested().size(), 1U);
  EXPECT_EQ(passed_on(found).nested().front().message, "inner");
}

TEST(ErrorInfo, AMebibyteOfTextArrives) {
  const std::string text(std::size_t{1} << 20U, 'x');
  EXPECT_EQ(captured(std::runtime_error(text)).message(), text);
}

TEST(ErrorInfo, ADeathIsThrownAsWorkerDied) {
  try {
    error_info::died(exit_status::killed(SIGKILL)).raise();
    FAIL();
  } catch (const worker_died& caught) {
    EXPECT_EQ(caught.status(), exit_status::killed(SIGKILL));
    EXPECT_EQ(caught.code(), errc::worker_died);
    EXPECT_THAT(caught.what(), HasSubstr("SIGKILL"));
  }
}

TEST(ErrorInfo, LastWordsGoAlongAndAreShownInLinesOfTheirOwn) {
  auto death = error_info::died(exit_status::killed(SIGSEGV));
  EXPECT_EQ(death.last_output(), "");
  EXPECT_EQ(death.crash(), "");
  death.set_words({.output = "first\n\nlast\n", .crash = "SIGSEGV\n#0 f()\n"});
  const auto received = sent_to_another_process(death);
  EXPECT_EQ(received.last_output(), "first\n\nlast\n");
  EXPECT_EQ(received.crash(), "SIGSEGV\n#0 f()\n");
  EXPECT_EQ(received.describe(),
            "the worker was killed by SIGSEGV (11)\nit crashed:\n  SIGSEGV\n  #0 f()\n"
            "it had written last:\n  | first\n  | \n  | last");
}

TEST(ErrorInfo, OtherCodesAreThrownAsTaskError) {
  const error_info cancelled(errc::cancelled, "no longer wanted");
  EXPECT_EQ(cancelled, errc::cancelled);
  EXPECT_THROW(cancelled.raise(), task_error);
}

TEST(RemoteInfo, IsNothingForLocalExceptions) { EXPECT_EQ(remote_info(std::runtime_error("local")), nullptr); }

}  // namespace
}  // namespace muster::error_info_test
