// SPDX-License-Identifier: BSL-1.0
// What exceptions of tasks are in the program: pools of processes, one within another.
#include <cerrno>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/system_error.hpp>

#include <muster/pool/async.hpp>
#include <muster/pool/pool.hpp>
#include <muster/serialize/exception_type.hpp>

namespace muster::exception_test {
namespace {

using testing::HasSubstr;

class weather_category final : public std::error_category {
public:
  [[nodiscard]] const char* name() const noexcept override { return "weather"; }
  [[nodiscard]] std::string message(int value) const override { return "storm " + std::to_string(value); }
};
const weather_category weather;        // registered
const weather_category other_weather;  // not

// In an unnamed namespace, with state and a text of its base's.
struct parse_error : std::runtime_error {
  int line = 0;

  parse_error() : std::runtime_error("") {}
  parse_error(const std::string& what, int where) : std::runtime_error("parsing: " + what), line(where) {}
  template <class Archive>
  void serialize(Archive& archive) {
    archive(line);
  }
};

struct wet_error : parse_error {  // not registered
  wet_error() : parse_error("wet", 4) {}
};

struct broken_error : std::exception {
  template <class Archive>
  void save(Archive&) const {
    throw std::logic_error("no pen");
  }
  template <class Archive>
  void load(Archive&) {}
};

struct counted {
  int number = 1;
};
struct left : virtual counted {};
struct right : virtual counted {};
struct diamond : std::exception, left, right {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(number);
  }
};

struct report {
  int line = 0;
  std::error_code code;
  std::vector<std::error_code> more;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(line, code, more);
  }
};

class ExceptionOfATask : public testing::Test {
protected:
  // Calls `look` with the exception as it comes of a worker, and of a worker's own worker.
  template <class T, class Run, class Look>
  void expect(Run run, const Look& look) {
    const auto catches = [&](const auto& call) {
      try {
        call();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const T& caught) {
        look(caught);
      } catch (const std::exception& caught) {
        ADD_FAILURE() << "caught as " << typeid(caught).name() << ": " << caught.what();
      }
    };
    catches([&] { pool_.apply(run); });
    catches([&] {
      pool_.apply([] {
        const pool inner({.workers = 1, .arena_bytes = std::size_t{16} << 20U});
        inner.apply(Run());
      });
    });
  }

  pool pool_{{.workers = 1}};
};

TEST_F(ExceptionOfATask, KeepsTheCodeOfARegisteredCategory) {
  expect<std::system_error>([] { throw std::system_error(5, weather, "sailing"); },
                            [](const std::system_error& caught) {
                              EXPECT_EQ(caught.code(), std::error_code(5, weather));
                              EXPECT_STREQ(caught.what(), "sailing: storm 5");
                            });
}

TEST_F(ExceptionOfATask, KeepsNameAndTextOfAnUnknownCategory) {
  expect<std::system_error>([] { throw std::system_error(2, other_weather, "sailing"); },
                            [](const std::system_error& caught) {
                              EXPECT_STREQ(caught.code().category().name(), "weather");
                              EXPECT_EQ(caught.code().message(), "storm 2");
                              EXPECT_NE(caught.code(), std::error_code(2, weather));
                              EXPECT_NE(caught.code(), std::errc::no_such_file_or_directory);
                            });
}

TEST_F(ExceptionOfATask, KeepsThePathsOfAFilesystemError) {
  expect<std::filesystem::filesystem_error>([] { std::filesystem::copy_file("/nowhere/a", "/nowhere/b"); },
                                            [](const std::filesystem::filesystem_error& caught) {
                                              EXPECT_EQ(caught.path1(), "/nowhere/a");
                                              EXPECT_EQ(caught.path2(), "/nowhere/b");
                                              EXPECT_EQ(caught.code(), std::errc::no_such_file_or_directory);
                                            });
}

TEST_F(ExceptionOfATask, OfAStreamIsCaughtAsItsFailure) {
  const auto read = [] {
    std::ifstream file;
    file.exceptions(std::ios::failbit);
    file.open("/nowhere");
  };
  expect<std::ios_base::failure>(read, [](const std::ios_base::failure& caught) {
    EXPECT_EQ(caught.code(), std::io_errc::stream);
    EXPECT_NE(caught.code(), std::errc::operation_not_permitted);
  });
}

TEST_F(ExceptionOfATask, OfAsioIsCaughtAsItself) {
  const auto connect = [] {
    boost::asio::io_context loop;
    boost::asio::ip::tcp::socket(loop).connect({boost::asio::ip::address_v4::loopback(), 0});
  };
  expect<boost::system::system_error>(connect, [](const boost::system::system_error& caught) {
    EXPECT_EQ(caught.code(), boost::asio::error::connection_refused);
    EXPECT_THAT(caught.what(), HasSubstr("connect"));
    EXPECT_TRUE(remote_info(caught)->is_of(typeid(boost::system::system_error))) << "whatever wraps it";
  });
  expect<boost::system::system_error>([] { throw boost::system::system_error(boost::asio::error::eof, "reading"); },
                                      [](const boost::system::system_error& caught) {
                                        EXPECT_EQ(caught.code(), boost::asio::error::eof);
                                        EXPECT_THAT(caught.what(), HasSubstr("reading: End of file"));
                                      });
}

TEST_F(ExceptionOfATask, OfARegisteredTypeKeepsTextAndState) {
  expect<parse_error>([] { throw parse_error("no brace", 12); },
                      [](const parse_error& caught) {
                        EXPECT_STREQ(caught.what(), "parsing: no brace");
                        EXPECT_EQ(caught.line, 12);
                        ASSERT_NE(remote_info(caught), nullptr);
                        EXPECT_EQ(remote_info(caught)->place().worker, 0);
                      });
}

TEST_F(ExceptionOfATask, OfAnUnregisteredTypeIsCaughtByItsBase) {
  expect<parse_error>([] { throw wet_error(); },
                      [](const parse_error& caught) {
                        EXPECT_STREQ(caught.what(), "parsing: wet");
                        EXPECT_EQ(caught.line, 4);
                        EXPECT_THAT(remote_info(caught)->type_name(), HasSubstr("wet_error"));
                      });
}

TEST_F(ExceptionOfATask, KeepsTheStateOfVirtualBases) {
  const auto run = [] {
    diamond thrown;
    thrown.number = 7;
    throw thrown;
  };
  expect<diamond>(run, [](const diamond& caught) { EXPECT_EQ(caught.number, 7); });
}

TEST_F(ExceptionOfATask, ThatCannotBeSavedSaysSo) {
  expect<remote_exception>([] { throw broken_error(); },
                           [](const remote_exception& caught) {
                             EXPECT_THAT(caught.type_name(), HasSubstr("broken_error"));
                             EXPECT_EQ(caught.remote_what(), "std::exception");
                             EXPECT_THAT(caught.what(), HasSubstr("no pen"));
                             EXPECT_EQ(caught.info().place().worker, 0);
                           });
}

TEST_F(ExceptionOfATask, BringsItsInnerExceptions) {
  const auto run = [] {
    try {
      throw parse_error("inner", 3);
    } catch (...) {
      std::throw_with_nested(std::system_error(EIO, std::generic_category(), "outer"));
    }
  };
  expect<std::system_error>(run, [](const std::system_error& outer) {
    EXPECT_EQ(outer.code(), std::errc::io_error);
    try {
      std::rethrow_if_nested(outer);
      ADD_FAILURE() << "no inner exception";
    } catch (const parse_error& inner) {
      EXPECT_EQ(inner.line, 3);
      EXPECT_STREQ(inner.what(), "parsing: inner");
    }
  });
}

TEST_F(ExceptionOfATask, OfChosenTypesIsReasonToTryAgain) {
  const auto tries = [] {
    if (this_task::attempt() < 3) throw parse_error("again", 1);
    return this_task::attempt();
  };
  EXPECT_EQ(pool_.with({.retries = 4, .retry_on = retry::exceptions<parse_error>()}).apply(tries), 3U);
  EXPECT_THROW(pool_.with({.retries = 4, .retry_on = retry::exceptions<wet_error>()}).apply(tries), parse_error);
}

TEST_F(ExceptionOfATask, InAMapBringsItsCode) {
  const auto sail = [](int force) {
    if (force > 6) throw std::system_error(force, weather);
    return force;
  };
  try {
    static_cast<void>(pool_.map(sail, {1, 7}));
    FAIL();
  } catch (const std::system_error& caught) {
    EXPECT_EQ(caught.code(), std::error_code(7, weather));
    EXPECT_EQ(remote_info(caught)->place().element, 1U);
  }
}

TEST_F(ExceptionOfATask, CodesAreArgumentsResultsMembersAndElements) {
  const std::error_code code(3, weather);
  EXPECT_TRUE(pool_.apply([](std::error_code given) { return given == std::error_code(3, weather); }, code));
  EXPECT_EQ(pool_.apply([] { return std::error_code(3, weather); }), code);
  EXPECT_EQ(pool_.apply([] { return std::make_error_condition(std::errc::timed_out); }), std::errc::timed_out);
  const auto echoed =
      pool_.apply([](const report& given) { return given; }, report{.line = 1, .code = code, .more = {code}});
  EXPECT_EQ(echoed.code, code);
  EXPECT_EQ(echoed.more.at(0), code);
  EXPECT_EQ(pool_.map([](const std::error_code& each) { return each; }, std::vector{code, code}),
            (std::vector{code, code}));
  EXPECT_EQ(pool_.apply([] { return std::error_code(3, other_weather); }).message(), "storm 3");
}

TEST_F(ExceptionOfATask, CodesOfAsioAreValuesToo) {
  const boost::system::error_code eof = boost::asio::error::eof;
  EXPECT_EQ(pool_.apply([](boost::system::error_code given) { return given; }, eof), eof);
  const auto refused = pool_.apply([] { return make_error_code(boost::asio::error::connection_refused); });
  EXPECT_EQ(refused, boost::asio::error::connection_refused);
  EXPECT_EQ(pool_.apply([] { return boost::system::error_code(); }), boost::system::error_code());
  EXPECT_EQ(pool_.apply([] { return static_cast<std::error_code>(make_error_code(boost::asio::error::eof)); }),
            static_cast<std::error_code>(eof));
}

}  // namespace
}  // namespace muster::exception_test

MUSTER_REGISTER_ERROR_CATEGORY(muster::exception_test::weather)
MUSTER_REGISTER_EXCEPTION(muster::exception_test::parse_error)
MUSTER_REGISTER_EXCEPTION(muster::exception_test::broken_error)
MUSTER_REGISTER_EXCEPTION(muster::exception_test::diamond)
