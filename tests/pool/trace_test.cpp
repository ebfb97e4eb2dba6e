// SPDX-License-Identifier: BSL-1.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <muster/pool/detail/trace_writer.hpp>
#include <muster/pool/pool.hpp>

#include "refused_calls.hpp"
#include "temporary_directory.hpp"

namespace muster::trace_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

pool_options quiet(unsigned workers) {
  return {.workers = workers, .log = [](log_level, std::string_view) {}};
}

double microseconds_now() { return std::chrono::duration<double, std::micro>(clock::now().time_since_epoch()).count(); }

void take_time(int microseconds) { ::usleep(static_cast<unsigned>(microseconds)); }

/// The file of a trace, read back.
class trace {
public:
  [[nodiscard]] std::filesystem::path file() const { return directory_.path() / "trace.json"; }

  [[nodiscard]] std::vector<json> events() const {
    std::ifstream in(file());
    return json::parse(in).get<std::vector<json>>();
  }
  // By row.
  [[nodiscard]] static std::map<int, std::string> rows(const std::vector<json>& events) {
    std::map<int, std::string> names;
    for (const auto& each : events) {
      if (each["ph"] != "M" || each["name"] != "thread_name") continue;
      EXPECT_TRUE(names.emplace(each["tid"].get<int>(), each["args"]["name"].get<std::string>()).second);
    }
    return names;
  }
  [[nodiscard]] static std::vector<json> of_phase(const std::vector<json>& events, const char* phase) {
    std::vector<json> found;
    std::copy_if(events.begin(), events.end(), std::back_inserter(found),
                 [&](const json& each) { return each["ph"] == phase; });
    return found;
  }
  // Runs of tasks, in the order in which they began.
  [[nodiscard]] std::vector<json> runs() const {
    std::vector<json> found;
    for (auto& each : of_phase(events(), "X")) {
      if (each["name"] != "post") found.push_back(std::move(each));
    }
    std::sort(found.begin(), found.end(), [](const json& a, const json& b) { return a["ts"] < b["ts"]; });
    return found;
  }
  [[nodiscard]] std::vector<std::string> outcomes() const {
    std::vector<std::string> found;
    for (const auto& each : runs()) found.push_back(each["args"]["outcome"].get<std::string>());
    return found;
  }

private:
  const test::temporary_directory directory_;
};

TEST(Trace, HasARowForTheParentAndOneForEachWorker) {
  const trace traced;
  {
    auto options = quiet(3);
    options.name = "resizers";
    pool pool(options);
    pool.trace_to(traced.file());
    EXPECT_THROW(pool.apply([] { ::raise(SIGKILL); }), worker_died);  // its successor has the same row
    pool.apply([] {});
  }
  std::vector<std::string> names;
  for (const auto& [row, name] : trace::rows(traced.events())) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("resizers parent", "resizers worker 0", "resizers worker 1", "resizers worker 2"));
}

TEST(Trace, WorkersThatCameLaterHaveRowsToo) {
  const trace traced;
  {
    pool pool(quiet(1));
    pool.trace_to(traced.file());
    pool.resize(3);
    pool.on(2).apply([] {});
    pool.end_trace();
  }
  EXPECT_THAT(trace::rows(traced.events()), SizeIs(4));
}

TEST(Trace, EveryTaskIsInsideOfWhatItsCallTook) {
  const trace traced;
  std::map<std::uint64_t, std::pair<double, double>> calls;
  {
    pool pool(quiet(2));
    pool.trace_to(traced.file());
    for (std::uint64_t task = 1; task <= 50; ++task) {
      const auto before = microseconds_now();
      pool.with({.label = "nap"}).apply(take_time, 100);
      calls[task] = {before, microseconds_now()};
    }
    pool.end_trace();
    pool.apply([] {});  // is in no trace
  }
  const auto runs = traced.runs();
  ASSERT_THAT(runs, SizeIs(50));
  for (const auto& each : runs) {
    const auto begin = each["ts"].get<double>();
    const auto [before, after] = calls.at(each["args"]["task"].get<std::uint64_t>());
    EXPECT_GE(begin, before - 0.001);
    EXPECT_LE(begin + each["dur"].get<double>(), after + 0.001);
    EXPECT_GE(each["dur"].get<double>(), 100);
    EXPECT_FALSE(each["args"].contains("times"));
    EXPECT_EQ(each["name"], "nap");
    EXPECT_EQ(each["args"]["attempt"], 1);
    EXPECT_EQ(each["args"]["outcome"], "ok");
  }
}

TEST(Trace, AnArrowLeadsFromThePostToEachRun) {
  const trace traced;
  {
    pool pool(quiet(2));
    pool.trace_to(traced.file());
    std::vector<future<void>> naps;
    for (int each = 0; each < 40; ++each) naps.push_back(pool.apply_async(take_time, 50));
    for (auto& each : naps) each.get();
  }
  const auto events = traced.events();
  std::map<std::uint64_t, json> starts;
  std::set<double> posts;
  for (const auto& each : trace::of_phase(events, "s")) {
    EXPECT_TRUE(starts.emplace(each["id"].get<std::uint64_t>(), each).second);
  }
  for (const auto& each : trace::of_phase(events, "X")) {
    if (each["name"] == "post") posts.insert(each["ts"].get<double>());
  }
  std::set<std::pair<int, double>> runs;
  for (const auto& each : traced.runs()) runs.emplace(each["tid"].get<int>(), each["ts"].get<double>());
  const auto ends = trace::of_phase(events, "f");
  EXPECT_THAT(ends, SizeIs(40));
  EXPECT_THAT(starts, SizeIs(40));
  EXPECT_THAT(runs, SizeIs(40));
  const auto rows = trace::rows(events);
  for (const auto& end : ends) {
    const auto& start = starts.at(end["id"].get<std::uint64_t>());
    EXPECT_EQ(end["bp"], "e");
    EXPECT_EQ(end["name"], start["name"]);
    EXPECT_EQ(end["cat"], start["cat"]);
    EXPECT_LE(start["ts"].get<double>(), end["ts"].get<double>());
    EXPECT_TRUE(posts.contains(start["ts"].get<double>()));  // an event that it starts from
    EXPECT_THAT(rows.at(start["tid"].get<int>()), HasSubstr("parent"));
    EXPECT_TRUE(runs.contains({end["tid"].get<int>(), end["ts"].get<double>()}));
  }
}

TEST(Trace, AttemptsAfterADeathAreRunsOfTheirOwn) {
  const trace traced;
  {
    pool pool(quiet(1));
    pool.trace_to(traced.file());
    pool.with({.retries = 1, .label = "once"}).apply([] {
      if (this_task::attempt() == 1) ::raise(SIGKILL);
    });
  }
  const auto runs = traced.runs();
  EXPECT_THAT(traced.outcomes(), ElementsAre("worker_died", "ok"));
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0]["args"]["attempt"], 1);
  EXPECT_EQ(runs[1]["args"]["attempt"], 2);
  EXPECT_EQ(runs[0]["args"]["task"], runs[1]["args"]["task"]);
  EXPECT_NE(runs[0]["args"]["process"], runs[1]["args"]["process"]);
  EXPECT_LE(runs[0]["ts"].get<double>() + runs[0]["dur"].get<double>(), runs[1]["ts"].get<double>());
}

TEST(Trace, OutcomesAreThoseOfTheRuns) {
  const trace traced;
  {
    pool pool(quiet(1));
    pool.trace_to(traced.file());
    pool.apply([] {});
    EXPECT_THROW(pool.apply([] { throw std::runtime_error("no"); }), std::runtime_error);
    EXPECT_THROW(pool.with({.timeout = 20ms}).apply(take_time, 60'000'000), error);
    EXPECT_THROW(pool.apply([] { ::_exit(3); }), worker_died);
  }
  EXPECT_THAT(traced.outcomes(), ElementsAre("ok", "failed", "timed_out", "worker_died"));
}

TEST(Trace, WhatWasNeverBegunIsAnInstantInTheParentsRow) {
  const trace traced;
  {
    pool pool(quiet(1));
    pool.trace_to(traced.file());
    auto first = pool.apply_async(take_time, 20'000);
    auto second = pool.with({.label = "unwanted"}).apply_async(take_time, 0);
    ASSERT_TRUE(second.cancel());
    first.get();
  }
  EXPECT_THAT(traced.runs(), SizeIs(1));
  const auto events = traced.events();
  const auto instants = trace::of_phase(events, "i");
  ASSERT_THAT(instants, SizeIs(1));
  EXPECT_EQ(instants[0]["name"], "unwanted");
  EXPECT_EQ(instants[0]["args"]["outcome"], "cancelled");
  EXPECT_THAT(trace::rows(events).at(instants[0]["tid"].get<int>()), HasSubstr("parent"));
}

TEST(Trace, ChunksSayHowManyElementsTheyHave) {
  const trace traced;
  {
    pool pool(quiet(2));
    pool.trace_to(traced.file());
    pool.with({.chunk = 30}).map([](int x) { return x + 1; }, std::vector<int>(100));
    EXPECT_THROW(pool.with({.chunk = 4})
                     .map([](int x) { return x == 0 ? throw std::out_of_range("x") : x; }, std::vector<int>(4)),
                 std::out_of_range);
  }
  std::multiset<int> elements;
  for (const auto& each : traced.runs()) elements.insert(each["args"]["elements"].get<int>());
  EXPECT_THAT(elements, ElementsAre(4, 10, 30, 30, 30));
  const auto outcomes = traced.outcomes();
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), "failed"), 1);
}

TEST(Trace, IsCompleteAfterTerminate) {
  const trace traced;
  {
    pool pool(quiet(2));
    pool.trace_to(traced.file());
    std::vector<future<void>> naps;
    for (int each = 0; each < 5; ++each) naps.push_back(pool.apply_async(take_time, 60'000'000));
    auto first = pool.on(0).with({.label = "begun"}).apply_async([] {});
    naps[2].cancel();
    pool.terminate();
  }
  const auto events = traced.events();
  const auto outcomes = traced.outcomes();
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), "worker_died"), 0);
  EXPECT_THAT(outcomes.size() + trace::of_phase(events, "i").size(), 6U);
}

TEST(Trace, CanBeReadWhileItIsWritten) {
  const test::temporary_directory directory;
  const auto pipe = directory.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const unique_fd out(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));  // so that neither side waits for the other
  pool pool(quiet(1));
  pool.trace_to(pipe);
  pool.with({.label = "seen"}).apply([] {});
  std::string read;
  while (read.find("\"seen\"") == std::string::npos || read.find("\"bp\"") == std::string::npos) {
    std::array<char, 4096> room{};
    const auto got = ::read(out.get(), room.data(), room.size());  // waits until there is something
    ASSERT_GT(got, 0);
    read.append(room.data(), static_cast<std::size_t>(got));
  }
  EXPECT_FALSE(json::accept(read));
  EXPECT_TRUE(json::accept(read + "]"));
}

TEST(Trace, AnotherOneEndsTheFirst) {
  const trace first;
  const trace second;
  pool pool(quiet(1));
  pool.trace_to(first.file());
  pool.apply([] {});
  pool.trace_to(second.file());
  EXPECT_THAT(first.runs(), SizeIs(1));
  pool.end_trace();
  EXPECT_THAT(second.runs(), IsEmpty());
}

TEST(Trace, SaysWhatCannotBeWritten) {
  pool pool(quiet(1));
  try {
    pool.trace_to("/nowhere/at/all.json");
    FAIL() << "it was written";
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("/nowhere/at/all.json"));
  }
  pool.apply([] {});
  EXPECT_NO_THROW(pool.end_trace());
  EXPECT_THROW(pool.trace_to("/dev/full"), error);
}

TEST(Trace, WithoutAThreadIsAnErrorAndThereIsNone) {
  const test::temporary_directory directory;
  pool pool(quiet(1));
  const test::refused_calls scope("pthread_create", EAGAIN);
  try {
    pool.trace_to(directory.path() / "trace.json");
    ADD_FAILURE() << "no error";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), std::errc::resource_unavailable_try_again);
    EXPECT_THAT(failure.what(), HasSubstr("pthread_create"));
  }
  EXPECT_NO_THROW(pool.end_trace());
}

TEST(TraceText, IsJsonWhateverALabelHas) {
  detail::trace_text text([](function_token) { return std::string("f"); });
  const label_ref label(new label_text(std::string("q\"b\\n\nz") + '\0' + "\x80\xc3\xa9\xe2\x82 \xf0\x9f\x98\x80"));
  text.add({.task = 1, .worker = 0, .pid = 1, .label = label, .submitted = {}, .begin = {}, .end = {}});
  const auto parsed = json::parse('[' + text.take() + ']');  // its row, from where it was posted, and it
  EXPECT_EQ(parsed[4]["name"], std::string("q\"b\\n\nz") + '\0' + "?\xc3\xa9?? \xf0\x9f\x98\x80");
}

}  // namespace
}  // namespace muster::trace_test
