// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/error_info.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <any>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <ios>
#include <memory>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <typeinfo>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/serialize/exceptions.hpp>

#include "sent_error.hpp"

namespace muster::error_info_test {
namespace {

using test::passed_on;
using testing::HasSubstr;

// What arrives in the parent when a task throws `exception`.
template <class T>
error_info captured(const T& exception) {
  auto received = test::received_of([&] { throw exception; });  // NOLINT: thrown by value on purpose
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
  expect_comes_back_as_itself(std::future_error(std::future_errc::no_state));
  expect_comes_back_as_itself(std::regex_error(std::regex_constants::error_brack));
  expect_comes_back_as_itself(std::bad_any_cast());
  expect_comes_back_as_itself(std::exception());
  expect_comes_back_as_itself(std::filesystem::filesystem_error("copy", "/a", "/b", {EACCES, std::generic_category()}));
  expect_comes_back_as_itself(error(errc::timed_out, "ours"));
}

class stranger : public std::error_category {
public:
  [[nodiscard]] const char* name() const noexcept override { return "stranger"; }
  [[nodiscard]] std::string message(int value) const override { return "strange thing " + std::to_string(value); }
};

const std::error_category& own_category() {
  static const stranger instance;
  return instance;
}

TEST(ErrorInfo, CodesSurvive) {
  for (const auto code :
       {std::error_code(EACCES, std::system_category()), std::error_code(EACCES, std::generic_category()),
        make_error_code(std::io_errc::stream), make_error_code(std::future_errc::no_state),
        make_error_code(errc::overflow), std::error_code(2, own_category())}) {
    try {
      captured(std::system_error(code, "x")).raise();
    } catch (const std::system_error& caught) {
      EXPECT_EQ(caught.code(), code);
    }
    try {
      captured(error(code, "x")).raise();
    } catch (const error& caught) {
      EXPECT_EQ(caught.code(), code);
    }
  }
}

TEST(ErrorInfo, AnIntactTypeIsThatTypeToo) {
  try {
    captured(std::system_error(EACCES, std::system_category(), "x")).raise();
  } catch (const std::exception& caught) {
    EXPECT_EQ(typeid(caught), typeid(std::system_error));
  }
}

TEST(ErrorInfo, AFailureOfAStreamIsCaughtAsThat) {
  const auto found = test::received_of([] {
    std::ifstream file;
    file.exceptions(std::ios::failbit);
    file.open("/nowhere");
  });
  try {
    found.raise();
    FAIL();
  } catch (const std::ios_base::failure& caught) {
    EXPECT_EQ(caught.code(), std::io_errc::stream);
    EXPECT_NE(caught.code(), std::errc::operation_not_permitted);
    EXPECT_STREQ(caught.what(), "basic_ios::clear: iostream error");
  }
}

TEST(ErrorInfo, FilesystemErrorsKeepTheirPaths) {
  const auto found = test::received_of([] { std::filesystem::rename("/nowhere/a", "/nowhere/b"); });
  try {
    found.raise();
    FAIL();
  } catch (const std::filesystem::filesystem_error& caught) {
    EXPECT_EQ(caught.path1(), "/nowhere/a");
    EXPECT_EQ(caught.path2(), "/nowhere/b");
    EXPECT_EQ(caught.code(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(caught.what(), found.message());
  }
}

TEST(ErrorInfo, FutureAndRegexErrorsKeepTheirCodes) {
  try {
    test::received_of([] {
      auto later = std::promise<int>().get_future();
      later.get();
    }).raise();
    FAIL();
  } catch (const std::future_error& caught) {
    EXPECT_EQ(caught.code(), std::future_errc::broken_promise);
  }
  try {
    test::received_of([] { const std::regex wrong("("); }).raise();
    FAIL();
  } catch (const std::regex_error& caught) {
    EXPECT_EQ(caught.code(), std::regex_constants::error_paren);
  }
}

TEST(ErrorInfo, AnUnknownCategoryKeepsNameAndText) {
  const stranger category;
  try {
    captured(std::system_error(2, category, "reading")).raise();
    FAIL();
  } catch (const std::system_error& caught) {
    EXPECT_STREQ(caught.code().category().name(), "stranger");
    EXPECT_EQ(caught.code().message(), "strange thing 2");
    EXPECT_NE(caught.code(), std::errc::no_such_file_or_directory);
    EXPECT_STREQ(caught.what(), "reading: strange thing 2");
  }
}

class unknown_to_muster : public std::exception {
public:
  explicit unknown_to_muster(const char* what) : what_(what) {}
  [[nodiscard]] const char* what() const noexcept override { return what_; }

private:
  const char* what_;
};

TEST(ErrorInfo, AnUnregisteredTypeWithoutAStandardBaseArrivesAsRemoteException) {
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
  EXPECT_TRUE(found.is_of(typeid(std::runtime_error)));
  ASSERT_EQ(found.nested().size(), 1U);
  EXPECT_EQ(found.nested().front().type_name, "std::out_of_range");
  EXPECT_EQ(found.nested().front().message, "inner");
  EXPECT_THAT(found.describe(), HasSubstr("caused by std::out_of_range: inner"));
  EXPECT_THROW(found.raise(), std::runtime_error);
  ASSERT_EQ(passed_on(found).nested().size(), 1U);
  EXPECT_EQ(passed_on(found).nested().front().message, "inner");
}

// The exceptions of a chain, outermost first, as rethrow_if_nested finds them.
std::vector<std::string> chain_of(const error_info& found) {
  std::vector<std::string> chain;
  const std::function<void()> walk = [&] {
    try {
      throw;
    } catch (const std::exception& caught) {
      chain.emplace_back(caught.what());
      try {
        std::rethrow_if_nested(caught);
      } catch (...) {
        walk();
      }
    }
  };
  try {
    found.raise();
  } catch (...) {
    walk();
  }
  return chain;
}

void throw_three_levels() {
  try {
    try {
      throw std::out_of_range("innermost");
    } catch (...) {
      std::throw_with_nested(std::system_error(EIO, std::generic_category(), "inner"));
    }
  } catch (...) {
    std::throw_with_nested(std::runtime_error("outer"));
  }
}

TEST(ErrorInfo, NestedExceptionsAreFoundByRethrowIfNested) {
  const auto found = test::received_of(throw_three_levels);
  const std::vector<std::string> chain = {"outer", "inner: Input/output error", "innermost"};
  EXPECT_EQ(chain_of(found), chain);
  EXPECT_EQ(chain_of(passed_on(passed_on(found))), chain);
}

TEST(ErrorInfo, NestedExceptionsArriveAsThemselves) {
  try {
    test::received_of(throw_three_levels).raise();
    FAIL();
  } catch (const std::runtime_error& outer) {
    try {
      std::rethrow_if_nested(outer);
      FAIL();
    } catch (const std::system_error& inner) {
      EXPECT_EQ(inner.code(), std::errc::io_error);
      EXPECT_THROW(std::rethrow_if_nested(inner), std::out_of_range);
      ASSERT_NE(remote_info(inner), nullptr);
      EXPECT_EQ(remote_info(inner)->nested().size(), 1U);
    }
  }
}

TEST(ErrorInfo, NestedInAnExceptionOfAnUnknownTypeIsFoundToo) {
  const auto found = test::received_of([] {
    try {
      throw std::out_of_range("inner");
    } catch (...) {
      std::throw_with_nested(unknown_to_muster("outer"));
    }
  });
  for (const auto& each : {found, passed_on(found)}) {
    try {
      each.raise();
      FAIL();
    } catch (const remote_exception& outer) {
      EXPECT_THAT(outer.type_name(), HasSubstr("unknown_to_muster"));
      EXPECT_THROW(std::rethrow_if_nested(outer), std::out_of_range);
    }
  }
}

TEST(ErrorInfo, WithoutAnInnerExceptionNoneIsFound) {
  try {
    captured(std::runtime_error("alone")).raise();
  } catch (const std::runtime_error& caught) {
    EXPECT_NO_THROW(std::rethrow_if_nested(caught));
  }
}

TEST(ErrorInfo, IsWhatOneProcessNestsAroundAnothersException) {
  const auto found = test::received_of([] {
    try {
      test::received_of(throw_three_levels).raise();
    } catch (...) {
      std::throw_with_nested(std::logic_error("outermost"));
    }
  });
  EXPECT_EQ(chain_of(found),
            (std::vector<std::string>{"outermost", "outer", "inner: Input/output error", "innermost"}));
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
  const auto received = test::received(death);
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

TEST(RemoteInfo, IsNothingForACopy) {
  try {
    captured(std::runtime_error("x")).raise();
  } catch (const std::runtime_error& caught) {
    const std::runtime_error copy = caught;
    EXPECT_EQ(remote_info(copy), nullptr);
  }
}

TEST(RemoteInfo, LastsAsLongAsTheException) {
  std::exception_ptr kept;
  try {
    captured(std::runtime_error("x")).raise();
  } catch (...) {
    kept = std::current_exception();
  }
  try {
    std::rethrow_exception(kept);
  } catch (const std::exception& again) {
    ASSERT_NE(remote_info(again), nullptr);
    EXPECT_EQ(remote_info(again)->message(), "x");
  }
}

TEST(RemoteInfo, IsToldApartAmongManyThreads) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&wrong, thread] {
      for (int round = 0; round < 200; ++round) {
        const auto text = std::to_string(thread) + ' ' + std::to_string(round);
        try {
          captured(std::runtime_error(text)).raise();
        } catch (const std::exception& caught) {
          const auto* info = remote_info(caught);
          if (info == nullptr || info->message() != text) ++wrong;
        }
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

// Whatever the parent's other threads do at the time of a fork, its child finds the tables whole and their lock free.
TEST(RemoteInfo, IsFoundInForkedChildren) {
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) EXPECT_THROW(captured(std::runtime_error("busy")).raise(), std::runtime_error);
  });
  for (int round = 0; round < 50; ++round) {
    const auto child = ::fork();
    if (child == 0) {
      try {
        captured(std::runtime_error("child")).raise();
      } catch (const std::exception& caught) {
        ::_exit(remote_info(caught) != nullptr ? 0 : 1);
      }
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  done = true;
  busy.join();
}

TEST(RemoteInfo, IsToldApartAmongManyExceptions) {
  std::vector<std::exception_ptr> kept;
  for (int number = 0; number < 100; ++number) {
    try {
      captured(std::runtime_error(std::to_string(number))).raise();
    } catch (...) {
      kept.push_back(std::current_exception());
    }
  }
  for (std::size_t number = 0; number < kept.size(); number += 3) kept[number] = nullptr;
  for (std::size_t number = 0; number < kept.size(); ++number) {
    if (!kept[number]) continue;
    try {
      std::rethrow_exception(kept[number]);
    } catch (const std::exception& again) {
      EXPECT_EQ(remote_info(again)->message(), std::to_string(number));
    }
  }
}

}  // namespace
}  // namespace muster::error_info_test

MUSTER_REGISTER_ERROR_CATEGORY(muster::error_info_test::own_category())
