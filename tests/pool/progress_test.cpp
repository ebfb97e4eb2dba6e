// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/progress.hpp>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>

namespace muster::progress_test {
namespace {

using namespace std::chrono_literals;
using detail::progress_meter;
using detail::progress_state;
using detail::progress_text;
using testing::EndsWith;
using testing::IsEmpty;
using testing::StartsWith;

std::string text_at(std::size_t width) {
  return progress_text({.label = "resize", .done = 250, .total = 1000, .elapsed = 10s}, width);
}

TEST(ProgressText, HasCountShareRateAndRemainingTime) {
  EXPECT_EQ(text_at(60), "resize: 250/1000 25% [#####               ] 25.0/s 0:30 left");
}

TEST(ProgressText, IsNeverWiderThanTheTerminal) {
  for (std::size_t width = 0; width < 120; ++width) EXPECT_LE(text_at(width).size(), width);
}

TEST(ProgressText, KeepsTheCountLongest) {
  EXPECT_EQ(text_at(8), "250/1000");
  EXPECT_EQ(text_at(12), "250/1000 25%");
  EXPECT_EQ(text_at(19), "250/1000 25% 25.0/s");
  EXPECT_EQ(text_at(30), "250/1000 25% 25.0/s 0:30 left");
}

TEST(ProgressText, SaysHowLongItTookInTheEnd) {
  EXPECT_EQ(progress_text({.label = {}, .done = 5, .total = 5, .elapsed = 3661s}, 40),
            "5/5 100% [##########] 0.001/s in 1:01:01");
}

TEST(ProgressText, NeedsNoTotalAndNoTime) {
  EXPECT_EQ(progress_text({.label = "x", .done = 12'000'000, .total = {}, .elapsed = 2s}, 40),
            "x: 12000000 6.00M/s 0:02");
  EXPECT_EQ(progress_text({.label = {}, .done = 0, .total = 7, .elapsed = 0s}, 12), "0/7 0%");
  EXPECT_EQ(progress_text({.label = {}, .done = 0, .total = 0, .elapsed = 1s}, 80), "0/0");
}

// What is in the pipe or terminal by now.
std::string read_all(int descriptor) {
  std::array<char, 65536> room{};
  const auto got = ::read(descriptor, room.data(), room.size());
  return got > 0 ? std::string(room.data(), static_cast<std::size_t>(got)) : std::string();
}

// What a terminal's program wrote reaches the other side in pieces, and later.
std::string read_from_terminal(int descriptor, std::size_t size) {
  std::string text;
  while (text.size() < size) {
    const auto more = read_all(descriptor);
    if (more.empty()) break;
    text += more;
  }
  return text;
}

struct pipe_ends {
  pipe_ends() {
    std::array<int, 2> both{};
    EXPECT_EQ(::pipe2(both.data(), O_CLOEXEC | O_NONBLOCK), 0);
    out = unique_fd(both[0]);
    in = unique_fd(both[1]);
  }
  unique_fd out;
  unique_fd in;
};

TEST(ProgressMeter, WritesPlainLinesWhereThereIsNoTerminal) {
  const pipe_ends ends;
  progress_meter meter("job", 10, {.descriptor = ends.in.get(), .plain = 0s});
  meter.add(4);
  meter.show();
  EXPECT_THAT(read_all(ends.out.get()), StartsWith("job: 4/10 40%"));
  meter.add(6);
  meter.finish();
  meter.finish();
  meter.show();
  const auto last = read_all(ends.out.get());
  EXPECT_THAT(last, StartsWith("job: 10/10 100%"));
  EXPECT_THAT(last, EndsWith("\n"));
  EXPECT_EQ(last.find('\r'), std::string::npos);
}

TEST(ProgressMeter, WritesNothingBeforeItIsDue) {
  const pipe_ends ends;
  {
    progress_meter meter("job", 10, {.descriptor = ends.in.get()});
    meter.add(10);
    meter.show();
    EXPECT_GT(meter.due(), clock::now());
  }
  EXPECT_THAT(read_all(ends.out.get()), IsEmpty());
}

TEST(ProgressMeter, RedrawsOneLineOfATerminalAsWideAsThat) {
  const unique_fd ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(ours);
  ASSERT_EQ(::grantpt(ours.get()), 0);
  ASSERT_EQ(::unlockpt(ours.get()), 0);
  const unique_fd terminal(::open(::ptsname(ours.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  const winsize size{.ws_row = 24, .ws_col = 13, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
  progress_meter meter("a\nb", 1000, {.descriptor = terminal.get(), .redraw = 0s});
  meter.add(250);
  meter.show();
  const std::string line = "\r250/1000 25%\x1b[K";
  EXPECT_EQ(read_from_terminal(ours.get(), line.size()), line);
  meter.finish();
  EXPECT_EQ(read_from_terminal(ours.get(), line.size() + 2), line + "\r\n");
}

TEST(Progress, MapsAndStreamsWithItGiveTheSameResults) {
  const pool pool({.workers = 2});
  std::vector<int> numbers(500);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto shown = pool.with({.label = "squares", .progress = true});
  const auto square = [](int x) { return x * x; };
  const auto squares = pool.map(square, numbers);
  EXPECT_EQ(shown.map(square, numbers), squares);
  EXPECT_EQ(shown.map_async(square, numbers).get(), squares);
  std::vector<int> streamed;
  for (const int each : shown.imap(square, numbers)) streamed.push_back(each);
  EXPECT_EQ(streamed, squares);
  streamed.clear();
  for (const int each : pool.with({.chunk = 1, .progress = true}).imap(square, numbers)) streamed.push_back(each);
  EXPECT_EQ(streamed, squares);
  long sum = 0;
  for (const int each : shown.imap_unordered(square, numbers)) sum += each;
  EXPECT_EQ(sum, std::accumulate(squares.begin(), squares.end(), 0L));
}

}  // namespace
}  // namespace muster::progress_test
