// SPDX-License-Identifier: BSL-1.0
// The service example: how it reads targets, and the program under HTTP clients: every answer, and that crashes, slow
// requests and its own end hurt no other request.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <muster/base/system_call.hpp>
#include <muster/base/unique_fd.hpp>

#include "processes.hpp"
#include "service/request_target.hpp"
#include "service/tasks.hpp"
#include "temporary_directory.hpp"

namespace service {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using namespace std::chrono_literals;
using asio::ip::tcp;
using muster::test::eventually;
using testing::HasSubstr;
using testing::StartsWith;

// ---- targets of requests

std::string refusal_of(std::string_view text) {
  try {
    const request_target read(text);
    static_cast<void>(read.number("ms", 100));
  } catch (const bad_request& refused) {
    return refused.what();
  }
  return "not refused";
}

TEST(RequestTarget, PathAndParametersAreDecoded) {
  const request_target read("/hash?path=%2Ftmp%2fa+b%25&empty=&flag&path=second&ms=42");
  EXPECT_EQ(read.path(), "/hash");
  EXPECT_EQ(read.parameter("path", "FILE"), "/tmp/a b%");
  EXPECT_EQ(read.number("ms", 100), 42U);
  EXPECT_EQ(request_target("/").path(), "/");
  EXPECT_EQ(request_target("/?").path(), "/");
}

TEST(RequestTarget, BadOnesSayWhatWasGivenAndWhatWasExpected) {
  EXPECT_THAT(refusal_of("hash"), HasSubstr("the target is 'hash'; it must begin with /"));
  for (const auto* text : {"/?ms=%", "/?ms=%4", "/?ms=%4g", "/?ms=%00", "/?ms=%-1", "/?%zz=1"})
    EXPECT_THAT(refusal_of(text), HasSubstr("two hexadecimal digits")) << text;
  for (const auto* text : {"/", "/?ms", "/?ms=", "/?sm=1"})
    EXPECT_THAT(refusal_of(text), HasSubstr("'ms' is missing or empty; expected: /?ms=a whole number from 0 to 100"));
  for (const auto* text : {"/?ms=-1", "/?ms=101", "/?ms=1s", "/?ms=1.5", "/?ms=99999999999999999999"})
    EXPECT_THAT(refusal_of(text), HasSubstr("; expected: a whole number from 0 to 100")) << text;
}

// ---- the program

/// The program, running; what it writes to stdout is kept.
class program {
public:
  explicit program(const std::string& options) {
    std::array<int, 2> ends{};
    muster::system_call("pipe2", [&] { return ::pipe2(ends.data(), O_CLOEXEC); });
    const muster::unique_fd in(ends[1]);
    output_ = ::fdopen(ends[0], "r");
    const auto command = "exec " SERVICE_PROGRAM " " + options;
    process_.add([&](std::size_t) {
      ::dup2(in.get(), STDOUT_FILENO);
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      return 127;
    });
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  ~program() { std::fclose(output_); }

  /// Where it listens. Waits until it says so.
  [[nodiscard]] std::string address() {
    const auto line = read_line();
    EXPECT_THAT(line, StartsWith("service: listening on http://127.0.0.1:"));
    return line;
  }
  // But what LeakSanitizer says when a thread that was joined is still ending.
  [[nodiscard]] std::string read_line() {
    std::array<char, 4096> line{};
    do {
      if (std::fgets(line.data(), line.size(), output_) == nullptr) return "";
    } while (std::string_view(line.data()).find("==Unable to get registers from thread") != std::string_view::npos);
    return line.data();
  }
  void signal(int number) const { ::kill(process_.pid(0), number); }
  /// To all its processes, as a service manager does; they lead groups of their own.
  void signal_all(int number) const {
    const auto pid = process_.pid(0);
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      std::ifstream children(thread.path() / "children");
      for (pid_t child = 0; children >> child;) ::kill(child, number);
    }
    ::kill(pid, number);
  }
  [[nodiscard]] muster::exit_status wait() { return process_.wait(0); }

private:
  std::FILE* output_ = nullptr;
  muster::test::processes process_;
};

struct reply {
  unsigned status = 0;
  std::string body;
  std::string type;
  bool keep_alive = false;
};

/// A client with one connection.
class client {
public:
  explicit client(std::uint16_t port) : socket_(io_) { socket_.connect({asio::ip::address_v4::loopback(), port}); }

  reply get(const std::string& target, http::verb method = http::verb::get, unsigned version = 11) {
    http::write(socket_, http::request<http::empty_body>(method, target, version));
    return read(method == http::verb::head);
  }
  void send_only(const std::string& text) { asio::write(socket_, asio::buffer(text)); }
  reply send(const std::string& text) {
    send_only(text);
    return read(false);
  }
  /// Begins a request, whose answer read() brings.
  void begin(const std::string& target) {
    http::write(socket_, http::request<http::empty_body>(http::verb::get, target, 11));
  }
  reply read(bool without_body = false) {
    http::response_parser<http::string_body> parser;
    parser.skip(without_body);
    http::read(socket_, received_, parser);
    const auto& found = parser.get();
    return {found.result_int(), found.body(), found[http::field::content_type], found.keep_alive()};
  }
  /// Waits until the server has closed the connection; whether it did so without a word.
  [[nodiscard]] bool is_closed() {
    std::array<char, 1> byte{};
    boost::system::error_code ended;
    return asio::read(socket_, asio::buffer(byte), ended) == 0 && ended;
  }

private:
  asio::io_context io_;
  tcp::socket socket_;
  boost::beast::flat_buffer received_;
};

class Service : public testing::Test {
protected:
  // So that a process which the program leaves behind becomes ours, and is seen.
  void SetUp() override { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

  /// Starts it; unless `options` say otherwise tasks may take long, so that no machine is too slow.
  void start(const std::string& options = "--workers 2 --deadline 60000") {
    program_.emplace("--port 0 " + options);
    const auto address = program_->address();
    port_ = static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
  }
  /// Asks in a connection of its own.
  [[nodiscard]] reply get(const std::string& target) const { return client(port_).get(target); }
  /// Waits until so many tasks have been accepted.
  [[nodiscard]] bool have_begun(std::size_t tasks) const {
    const auto line = "muster_tasks_accepted_total{pool=\"service\"} " + std::to_string(tasks) + '\n';
    return eventually([&] { return get("/metrics").body.find(line) != std::string::npos; });
  }
  void expect_good_end() {
    EXPECT_EQ(program_->read_line(), "service: stopped\n");
    EXPECT_EQ(program_->wait(), muster::exit_status::exited(0));
    EXPECT_TRUE(eventually([] { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }));
  }
  void end(int signal = SIGTERM) {
    program_->signal(signal);
    expect_good_end();
  }
  [[nodiscard]] std::string write(const std::string& name, const std::string& content) const {
    files_.write(name, content);
    return (files_.path() / name).string();
  }

  muster::test::temporary_directory files_;
  std::optional<program> program_;
  std::uint16_t port_ = 0;
};

std::string hash_line(const std::string& content, const std::string& path) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(content.data(), content.size()));
  std::ostringstream line;
  for (const auto byte : canonical.digest) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    line << digits.data();
  }
  line << "  " << path << '\n';
  return std::move(line).str();
}

TEST_F(Service, HashesFilesAsXxh128sumDoes) {
  start();
  const auto empty = write("empty", "");
  EXPECT_EQ(get("/hash?path=" + empty).body, "99aa06d3014798d86001c324468d497f  " + empty + '\n');
  std::string content;
  for (int number = 0; content.size() < 300'000; ++number) content += std::to_string(number) + '\n';
  const auto large = write("large", content);
  const auto found = get("/hash?path=" + large);
  EXPECT_EQ(found.status, 200U);
  EXPECT_EQ(found.body, hash_line(content, large));
  EXPECT_EQ(found.type, "text/plain; charset=utf-8");
  end();
}

TEST_F(Service, AFileThatCannotBeReadIsTheClientsError) {
  start();
  const auto absent = get("/hash?path=/absent/file");
  EXPECT_EQ(absent.status, 404U);
  EXPECT_EQ(absent.body, "/absent/file: No such file or directory\n");
  EXPECT_EQ(get("/hash?path=" + write("file", "") + "/below").status, 404U);
  EXPECT_EQ(get("/hash?path=" + files_.path().string()).status, 400U);
  EXPECT_EQ(get("/hash?path=" + std::string(5000, 'x')).status, 400U);
  EXPECT_EQ(get("/hash?path=/proc/self/mem").status, 500U);  // nobody may read address 0
  end();
}

TEST_F(Service, BadRequestsAreToldWhatWasExpected) {
  start();
  const auto missing = get("/hash");
  EXPECT_EQ(missing.status, 400U);
  EXPECT_EQ(missing.body, "the parameter 'path' is missing or empty; expected: /hash?path=FILE\n");
  EXPECT_EQ(get("/hash?path=%zz").status, 400U);
  const auto long_one = get("/sleep?ms=60001");
  EXPECT_EQ(long_one.status, 400U);
  EXPECT_EQ(long_one.body, "the parameter 'ms' is '60001'; expected: a whole number from 0 to 60000\n");
  const auto unknown = get("/absent?ms=1");
  EXPECT_EQ(unknown.status, 404U);
  EXPECT_EQ(unknown.body, "there is nothing at /absent; / lists what there is\n");
  const auto other_method = client(port_).get("/crash", http::verb::delete_);
  EXPECT_EQ(other_method.status, 405U);
  EXPECT_EQ(other_method.body, "the method is DELETE; expected: GET or HEAD\n");
  end();
}

TEST_F(Service, WhatIsNoRequestIsRefusedAndTheConnectionClosed) {
  start();
  const std::vector<std::pair<std::string, unsigned>> texts{
      {"no HTTP at all\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 400},
      {"GET / HTTP/1.1\r\nName: " + std::string(20'000, 'x') + "\r\n\r\n", 431}};
  for (const auto& [text, status] : texts) {
    client sender(port_);
    const auto refused = sender.send(text);
    EXPECT_EQ(refused.status, status) << text.substr(0, 40);
    EXPECT_THAT(refused.body, HasSubstr("expected: GET of a target, no body"));
    EXPECT_TRUE(sender.is_closed());
  }
  end();
}

TEST_F(Service, TheRootSaysWhatThereIs) {
  start();
  const auto help = get("/");
  EXPECT_EQ(help.status, 200U);
  for (const auto* target : {"/hash?path=", "/sleep?ms=", "/crash", "/metrics"})
    EXPECT_THAT(help.body, HasSubstr(target));
  end(SIGINT);
}

TEST_F(Service, AConnectionServesManyRequestsAndClosesWhenAsked) {
  start();
  client one(port_);
  EXPECT_EQ(one.get("/sleep?ms=0").body, "slept for 0 ms\n");
  EXPECT_EQ(one.get("/absent").status, 404U);
  const auto head = one.get("/sleep?ms=1", http::verb::head);
  EXPECT_EQ(head.status, 200U);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(one.send("GET /sleep?ms=1 HTTP/1.1\r\n\r\nGET /sleep?ms=2 HTTP/1.1\r\n\r\n").body, "slept for 1 ms\n");
  EXPECT_EQ(one.read().body, "slept for 2 ms\n");
  EXPECT_FALSE(one.get("/", http::verb::get, 10).keep_alive);
  EXPECT_TRUE(one.is_closed());
  end();
}

TEST_F(Service, AClientThatSaysNothingIsLeftAfterAWhile) {
  start("--workers 1 --patience 50");
  client silent(port_);
  EXPECT_TRUE(silent.is_closed());
  client half(port_);
  half.send_only("GET / HT");
  EXPECT_TRUE(half.is_closed());
  end();
}

TEST_F(Service, WhatTakesLongerThanTheDeadlineIsA504) {
  start("--workers 1 --deadline 50");
  const auto late = get("/sleep?ms=60000");
  EXPECT_EQ(late.status, 504U);
  EXPECT_THAT(late.body, HasSubstr("'sleep'"));
  EXPECT_THAT(late.body, HasSubstr("its deadline passed"));
  EXPECT_EQ(get("/hash?path=/dev/zero").status, 504U);  // has no end
  end();
}

TEST_F(Service, ACrashIsA500ThatSaysHowTheWorkerDied) {
  start("--workers 1 --deadline 60000");
  const auto crashed = get("/crash");
  EXPECT_EQ(crashed.status, 500U);
  EXPECT_THAT(crashed.body, HasSubstr("'crash', worker 0"));
  EXPECT_THAT(crashed.body, HasSubstr("the worker was killed by SIGABRT (6)"));
  EXPECT_EQ(get("/sleep?ms=1").status, 200U);
  end();
}

TEST_F(Service, MetricsCountWhatWasDone) {
  start("--workers 1 --deadline 60000");
  EXPECT_EQ(get("/sleep?ms=0").status, 200U);
  EXPECT_EQ(get("/crash").status, 500U);
  const auto metrics = get("/metrics");
  EXPECT_EQ(metrics.status, 200U);
  EXPECT_THAT(metrics.type, StartsWith("text/plain; version=0.0.4"));
  EXPECT_THAT(metrics.body, HasSubstr("muster_tasks_ended_total{pool=\"service\"} 2\n"));
  EXPECT_THAT(metrics.body, HasSubstr("muster_tasks_lost_total{pool=\"service\"} 1\n"));
  end();
}

TEST_F(Service, OneMoreThanItTakesIsA503) {
  start("--workers 1 --deadline 60000 --pending 1 --drain 0");
  client sleeper(port_);
  sleeper.begin("/sleep?ms=60000");
  ASSERT_TRUE(have_begun(1));
  const auto refused = get("/sleep?ms=0");
  EXPECT_EQ(refused.status, 503U);
  EXPECT_THAT(refused.body, HasSubstr("pending"));
  end();
}

/// Clients that ask again and again, from threads of their own, until crashes are over.
class Storm : public Service {
protected:
  void ask_until_over(const std::string& target, const std::string& expected) {
    client asker(port_);
    while (!over_) {
      const auto found = asker.get(target);
      EXPECT_EQ(found.status, 200U) << target << ": " << found.body;
      EXPECT_THAT(found.body, StartsWith(expected));
      ++answered_;
    }
  }
  // In connections for a few requests each.
  void ask_until_refused(const std::string& target) {
    try {
      for (;;) {
        client asker(port_);
        for (int request = 0; request < 5; ++request, ++answered_) EXPECT_EQ(asker.get(target).status, 200U);
      }
    } catch (const boost::system::system_error&) {
      return;
    }
  }
  void crash(int times) {
    client asker(port_);
    for (int time = 0; time < times; ++time) {
      const auto found = asker.get("/crash");
      EXPECT_EQ(found.status, 500U);
      EXPECT_THAT(found.body, HasSubstr("SIGABRT"));
      muster::test::work_for(200ms);
    }
  }

  std::atomic<bool> over_ = false;
  std::atomic<std::size_t> answered_ = 0;
};

TEST_F(Storm, WhileWorkersCrashTenTimesASecondNoOtherRequestFails) {
  start();
  const std::string content(100'000, 'x');
  const auto file = write("file", content);
  constexpr int crashes = 13;
  {
    std::vector<std::jthread> askers;
    for (int asker = 0; asker < 3; ++asker)
      askers.emplace_back([&] { ask_until_over("/hash?path=" + file, hash_line(content, file)); });
    askers.emplace_back([&] { ask_until_over("/sleep?ms=3", "slept for 3 ms\n"); });
    askers.emplace_back([&] { ask_until_over("/metrics", "# HELP muster_"); });
    std::jthread other([&] { crash(crashes); });
    crash(crashes);
    other.join();
    EXPECT_TRUE(eventually([&] { return answered_ > 100; }));
    over_ = true;
  }
  EXPECT_THAT(get("/metrics").body,
              HasSubstr("muster_tasks_lost_total{pool=\"service\"} " + std::to_string(2 * crashes) + '\n'));
  end();
}

TEST_F(Service, AClientThatGoesBeforeItsAnswerHarmsNobody) {
  start();
  client(port_).begin("/sleep?ms=1");
  ASSERT_TRUE(have_begun(1));
  EXPECT_EQ(get("/sleep?ms=1").status, 200U);
  end();
}

// Whatever a connection is at when the signal comes, none is waited for in vain: drain and patience are longer than the
// test may take.
TEST_F(Storm, ItEndsWhileClientsGoOnAsking) {
  for (int time = 0; time < 5; ++time) {
    start("--workers 2 --deadline 60000 --drain 600000 --patience 600000");
    std::vector<std::jthread> askers;
    for (int asker = 0; asker < 4; ++asker) askers.emplace_back([&] { ask_until_refused("/sleep?ms=0"); });
    EXPECT_TRUE(eventually([&] { return answered_ > 50; }));
    end();
    askers.clear();
    answered_ = 0;
  }
}

TEST_F(Service, OnSigtermRequestsUnderWayAreAnsweredAndNothingIsLeft) {
  start();
  client idle(port_);
  EXPECT_EQ(idle.get("/").status, 200U);
  client sleeper(port_);
  sleeper.begin("/sleep?ms=200");
  const auto pipe = (files_.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  client reader(port_);
  reader.begin("/hash?path=" + pipe);  // as long as nobody opens its other end
  ASSERT_TRUE(have_begun(2));
  program_->signal_all(SIGTERM);
  EXPECT_TRUE(idle.is_closed());
  EXPECT_THROW(client late(port_), boost::system::system_error);
  EXPECT_EQ(sleeper.read().body, "slept for 200 ms\n");
  EXPECT_TRUE(sleeper.is_closed());
  std::ofstream(pipe) << "content";
  const auto hashed = reader.read();
  EXPECT_EQ(hashed.body, hash_line("content", pipe));
  EXPECT_FALSE(hashed.keep_alive);
  EXPECT_TRUE(reader.is_closed());
  expect_good_end();
}

TEST_F(Service, WhatIsNotDoneWhenTheDrainIsOverIsCutOff) {
  start("--workers 1 --deadline 60000 --drain 50");
  client sleeper(port_);
  sleeper.begin("/sleep?ms=60000");
  ASSERT_TRUE(have_begun(1));
  program_->signal(SIGTERM);
  EXPECT_TRUE(sleeper.is_closed());
  expect_good_end();
}

TEST_F(Service, ATimeOfMoreThanAYearIsRefused) {
  for (const std::string option : {"--deadline", "--patience", "--drain"}) {
    program refused("--port 0 --workers 1 " + option + " 10000000000000 2>&1");
    EXPECT_THAT(refused.read_line(), HasSubstr(option + ": Value 10000000000000 not in range"));
    EXPECT_NE(refused.wait(), muster::exit_status::exited(0));
  }
}

TEST_F(Service, AnAddressThatIsTakenIsAnErrorThatSaysSo) {
  start();
  program second("--port " + std::to_string(port_) + " 2>&1");
  EXPECT_EQ(second.read_line(), "service: cannot listen on address '127.0.0.1', port " + std::to_string(port_) +
                                    ": Address already in use; expected an address of this machine and a port that "
                                    "is free\n");
  EXPECT_EQ(second.wait(), muster::exit_status::exited(1));
  program unknown("--port 0 --address nowhere 2>&1");
  EXPECT_THAT(unknown.read_line(), HasSubstr("address 'nowhere'"));
  EXPECT_EQ(unknown.wait(), muster::exit_status::exited(1));
  end();
}

}  // namespace
}  // namespace service
