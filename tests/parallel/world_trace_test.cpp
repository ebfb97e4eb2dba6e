// SPDX-License-Identifier: BSL-1.0
// What a world writes of its calls for Perfetto.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/log.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/unique_fd.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"
#include "world_support.hpp"

namespace muster::world_trace_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<json> events_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  return json::parse(in).get<std::vector<json>>();
}

std::vector<json> of_row(const std::vector<json>& events, int row, const char* category) {
  std::vector<json> found;
  for (const auto& each : events) {
    if (each["tid"] == row && each.contains("cat") && each["cat"] == category) found.push_back(each);
  }
  return found;
}

std::map<int, std::string> rows_of(const std::vector<json>& events) {
  std::map<int, std::string> names;
  for (const auto& each : events) {
    if (each["name"] == "thread_name") names.emplace(each["tid"].get<int>(), each["args"]["name"].get<std::string>());
  }
  return names;
}

double end_of(const json& event) { return event["ts"].get<double>() + event["dur"].get<double>(); }

template <class Call>
std::string complaint(const Call& call) {
  try {
    call();
  } catch (const error& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

TEST(WorldTrace, HasARowForTheCallerAndOneForEachRank) {
  const test::temporary_directory directory;
  const auto file = directory.path() / "trace.json";
  world w({.ranks = 2, .name = "twins"});
  const auto weights = w.replicate("weights", tensor::zeros<float>({1000}));
  auto f =
      w.function([](const tensor& x, const tensor& now) { return tensor::full<float>(now.shape(), test::total(x)); },
                 rows("x"), replicas(weights), updates(reduced_into(weights, sum)), named("step \"one\""));
  const auto x = tensor::ones<float>({64, 100});
  f(x);
  w.trace_to(file);
  f(x);
  f(x);
  w.end_trace();
  f(x);

  const auto events = events_in(file);
  EXPECT_THAT(rows_of(events), ElementsAre(Pair(1, "twins caller"), Pair(2, "twins rank 0"), Pair(3, "twins rank 1")));
  const auto calls = of_row(events, 1, "call");
  ASSERT_EQ(calls.size(), 2U);
  for (const auto& each : calls) {
    EXPECT_EQ(each["name"], "step \"one\"");
    EXPECT_EQ(each["args"]["failed"], false);
    EXPECT_EQ(each["args"]["input_bytes"], 64U * 100U * sizeof(float));
  }
  EXPECT_LE(end_of(calls[0]), calls[1]["ts"].get<double>());
  for (const int rank : {0, 1}) {
    auto at = calls[0]["ts"].get<double>();
    unsigned computed = 0;
    for (const auto& each : of_row(events, 2 + rank, "rank")) {
      EXPECT_GE(each["ts"].get<double>(), at - 0.0015) << "parts overlap";
      at = end_of(each);
      computed += each["name"] == "compute" ? 1U : 0U;
      EXPECT_EQ(each["args"]["function"], "step \"one\"");
    }
    EXPECT_EQ(computed, 2U) << "rank " << rank;
  }
}

TEST(WorldTrace, SaysWhichCallsFailed) {
  const test::temporary_directory directory;
  const auto file = directory.path() / "trace.json";
  world w({.ranks = 2});
  auto f = w.function([](const tensor& x) { return test::total(x); }, rows("x"), outputs(sum("sum")));
  w.trace_to(file);
  EXPECT_NE(test::refusal([&] { f.with({.num_slices = 0})(tensor::ones<float>({4})); }), "");
  f(tensor::ones<float>({4}));
  w.close();
  const auto calls = of_row(events_in(file), 1, "call");
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0]["args"]["failed"], true);
  EXPECT_EQ(calls[1]["args"]["failed"], false);
}

TEST(WorldTrace, AFileThatCannotBeWrittenIsNamedAndCallsGoOn) {
  world w({.ranks = 1});
  EXPECT_THAT(complaint([&] { w.trace_to("/no/such/directory/trace.json"); }),
              HasSubstr("/no/such/directory/trace.json"));
  auto f = w.function([](const tensor& x) { return test::total(x); }, rows("x"), outputs(sum("sum")));
  EXPECT_EQ(f(tensor::ones<float>({4})), 4.0F);
}

/// What a world has logged, also after its end.
class log_book {
public:
  [[nodiscard]] log_sink sink() const {
    return [book = book_](log_level level, std::string_view text) {
      const scoped_lock lock(book->guard);
      if (level == log_level::error) book->errors += text;
    };
  }
  [[nodiscard]] std::string errors() const {
    const scoped_lock lock(book_->guard);
    return book_->errors;
  }

private:
  struct content {
    mutex guard;
    std::string errors MUSTER_GUARDED_BY(guard);
  };
  std::shared_ptr<content> book_ = std::make_shared<content>();
};

// The file can be opened, and takes nothing: as on a disk that is full.
constexpr auto full = "/dev/full";

TEST(WorldTrace, AWorldWhoseTraceCannotBeCompletedEndsAllTheSameAndLogsIt) {
  const log_book book;
  for (const unsigned ranks : {1U, 2U}) {
    world w({.ranks = ranks, .log = book.sink()});
    auto f = w.function([](const tensor& x) { return test::total(x); }, rows("x"), outputs(sum("sum")));
    w.trace_to(full);
    EXPECT_EQ(f(tensor::ones<float>({4})), 4.0F);
  }
  EXPECT_THAT(book.errors(), testing::AllOf(HasSubstr(full), HasSubstr("cannot be written")));
}

TEST(WorldTrace, WhoEndsATraceOrClosesItsWorldIsToldThatItCannotBeCompleted) {
  world w({.ranks = 1});
  w.trace_to(full);
  EXPECT_THAT(complaint([&] { w.end_trace(); }), HasSubstr(full));
  w.end_trace();
  w.trace_to(full);
  EXPECT_THAT(complaint([&] { w.close(); }), HasSubstr(full));
}

std::optional<world> ended_inside;

TEST(WorldTrace, AWorldThatItsOwnFunctionEndsLogsATraceThatCannotBeCompleted) {
  for (const bool in_background : {false, true}) {
    const log_book book;
    ended_inside.emplace(world_options{.ranks = 1, .log = book.sink()});
    ended_inside->trace_to(full);
    auto f = ended_inside->function([] { ended_inside.reset(); });
    if (in_background) {
      f.async().get();
    } else {
      f();
    }
    EXPECT_TRUE(test::eventually([&] { return !book.errors().empty(); }));
    EXPECT_THAT(book.errors(), HasSubstr(full));
  }
}

TEST(WorldTrace, AForkedChildIsRefusedAndWritesNothingIntoTheParentsTrace) {
  const test::temporary_directory directory;
  const auto file = directory.path() / "trace.json";
  world w({.ranks = 2});
  auto f = w.function([](const tensor& x) { return test::total(x); }, rows("x"), outputs(sum("sum")));
  const auto x = tensor::ones<float>({4});
  w.trace_to(file);
  f(x);
  const auto child = test::spawn(1, [&](std::size_t /*rank*/) {
    int refused = 0;
    const auto look = [&refused](const auto& call) {
      try {
        call();
      } catch (const error& failure) {
        if (failure.code() == errc::forked) ++refused;
      }
    };
    look([&] { f(x); });
    look([&] { static_cast<void>(f.async(x)); });
    look([&] { static_cast<void>(f.local(x)); });
    look([&] { static_cast<void>(w.pids()); });
    look([&] { w.distribute(); });
    look([&] { w.trace_to(file); });
    look([&] { w.end_trace(); });
    return refused;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(7));
  f(x);
  w.end_trace();
  const auto calls = of_row(events_in(file), 1, "call");
  ASSERT_EQ(calls.size(), 2U);
  for (const auto& each : calls) EXPECT_EQ(each["args"]["failed"], false);
}

unique_fd opened(const std::filesystem::path& pipe, int mode) {
  return unique_fd(system_call("open", [&] { return ::open(pipe.c_str(), mode | O_CLOEXEC); }));
}

void read_and_ask(const unique_fd& end, const world& w, std::string& read_there) {
  std::array<char, 512> some;
  while (const auto count = system_call("read", [&] { return ::read(end.get(), some.data(), some.size()); })) {
    EXPECT_EQ(w.pids().size(), 2U);
    read_there.append(some.data(), static_cast<std::size_t>(count));
  }
}

TEST(WorldTrace, AReaderOfItAsAPipeMayAskTheWorldMeanwhile) {
  const test::temporary_directory directory;
  const auto pipe = directory.path() / "pipe";
  system_call("mkfifo", ::mkfifo, pipe.c_str(), 0600U);
  world w({.ranks = 2});
  const auto f = w.function([] {});
  std::string found;
  auto both_ends = opened(pipe, O_RDWR);
  const auto end = opened(pipe, O_RDONLY);
  // Of one page, so that a buffer does not fit: the write of a call that fills it waits for the reader.
  system_call("fcntl", ::fcntl, end.get(), F_SETPIPE_SZ, 4096);
  std::thread reader([&] { read_and_ask(end, w, found); });
  w.trace_to(pipe);
  both_ends.reset();
  for (int call = 0; call < 100; ++call) f();
  w.end_trace();
  reader.join();
  EXPECT_EQ(of_row(json::parse(found).get<std::vector<json>>(), 1, "call").size(), 100U);
}

TEST(WorldTrace, AnotherTraceEndsTheOneBefore) {
  const test::temporary_directory directory;
  world w({.ranks = 1});
  w.trace_to(directory.path() / "first.json");
  w.trace_to(directory.path() / "second.json");
  EXPECT_EQ(rows_of(events_in(directory.path() / "first.json")).size(), 2U);
  w.end_trace();
  w.end_trace();
  EXPECT_EQ(rows_of(events_in(directory.path() / "second.json")).size(), 2U);
}

}  // namespace
}  // namespace muster::world_trace_test
