// SPDX-License-Identifier: BSL-1.0
// What workers take from the program: directory, umask, limits, and signals that are the program's.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/pool/pool.hpp>
#include <muster/pool/this_worker.hpp>

#include "processes.hpp"
#include "temporary_directory.hpp"
#include "waiting_tasks.hpp"

namespace muster::program_state_test {
namespace {

namespace files = std::filesystem;

void do_nothing(int) {}

/// What a signal does in this program, as before when this ends.
class handled {
public:
  handled(int signal, void (*by)(int)) : signal_(signal) {
    struct sigaction now{};
    now.sa_handler = by;
    ::sigaction(signal, &now, &before_);
  }
  handled(const handled&) = delete;
  handled& operator=(const handled&) = delete;
  ~handled() { ::sigaction(signal_, &before_, nullptr); }

private:
  int signal_;
  struct sigaction before_{};
};

bool ends_by(const pool& which, int signal) {
  try {
    which.apply([](int each) { ::kill(::getpid(), each); }, signal);
    return false;
  } catch (const worker_died&) {
    return true;
  }
}

void end_worker(const pool& which) { EXPECT_TRUE(ends_by(which, SIGKILL)); }

// ---- directory, umask, limits

std::string where() { return files::current_path(); }

TEST(ProgramState, AWorkerThatComesLaterIsWhereTheFirstWas) {
  const auto before = files::current_path();
  const test::temporary_directory other;
  const pool workers(test::quiet(1));
  files::current_path(other.path());
  EXPECT_EQ(workers.apply(where), before);
  end_worker(workers);
  EXPECT_EQ(workers.apply(where), before);
  files::current_path(before);
}

unsigned mask() {
  const auto now = ::umask(0);
  ::umask(now);
  return now;
}
rlim_t most_files() {
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  return now.rlim_cur;
}

TEST(ProgramState, AWorkerThatComesLaterHasTheSameUmaskAndLimits) {
  const auto before = ::umask(0027);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const auto soft = files.rlim_cur;
  const pool workers(test::quiet(1));
  ::umask(0077);
  files.rlim_cur = soft - 1;
  ::setrlimit(RLIMIT_NOFILE, &files);
  end_worker(workers);
  EXPECT_EQ(workers.apply(mask), 0027U);
  EXPECT_EQ(workers.apply(most_files), soft);
  files.rlim_cur = soft;
  ::setrlimit(RLIMIT_NOFILE, &files);
  ::umask(before);
}

// ---- signals

int write_to_nobody() {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  ::close(ends[0]);
  const auto written = ::write(ends[1], "x", 1);
  const int cause = errno;
  ::close(ends[1]);
  return written == -1 ? cause : 0;
}

TEST(ProgramState, WritingToNobodyIsAnErrorInATaskAsInTheProgram) {
  {
    const pool workers(test::quiet(1));
    EXPECT_THROW(workers.apply(write_to_nobody), worker_died) << "as by default in the program";
  }
  const handled pipe(SIGPIPE, SIG_IGN);
  const pool workers(test::quiet(1));
  EXPECT_EQ(workers.apply(write_to_nobody), EPIPE);
  const auto status = workers.apply([] { return std::system("kill -PIPE $$"); });
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "what tasks execute has the default";
}

TEST(ProgramState, SignalsThatTheProgramHandlesOrIgnoresEndNoWorker) {
  {
    const pool workers(test::quiet(1));
    EXPECT_TRUE(ends_by(workers, SIGUSR1));
    EXPECT_TRUE(ends_by(workers, SIGRTMIN + 3));
  }
  const handled user(SIGUSR1, do_nothing);
  const handled further(SIGRTMIN + 3, SIG_IGN);
  const pool workers(test::quiet(1));
  EXPECT_FALSE(ends_by(workers, SIGUSR1));
  EXPECT_FALSE(ends_by(workers, SIGRTMIN + 3));
  EXPECT_TRUE(ends_by(workers, SIGUSR2));
}

TEST(ProgramState, SignalsThatTheProgramWaitsForEndNoWorker) {
  sigset_t some;
  ::sigemptyset(&some);
  ::sigaddset(&some, SIGUSR2);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &some, &before);
  const pool workers(test::quiet(1));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_FALSE(ends_by(workers, SIGUSR2));
  EXPECT_TRUE(ends_by(workers, SIGUSR1));
}

TEST(ProgramState, AnOptionNamesFurtherSignals) {
  auto how = test::quiet(1);
  how.ignored_signals = {SIGUSR1};
  const pool workers(how);
  EXPECT_FALSE(ends_by(workers, SIGUSR1));
  EXPECT_TRUE(ends_by(workers, SIGUSR2));
  for (const int signal : {SIGTERM, SIGSEGV, SIGKILL, 0, -1, 1000}) {
    how.ignored_signals = {signal};
    EXPECT_THROW(const pool none(how), error) << signal;
  }
}

// ---- output

/// Leads this process's standard output into a file.
class redirected {
public:
  explicit redirected(const files::path& file) : before_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    const int to = ::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    ::dup2(to, STDOUT_FILENO);
    ::close(to);
  }
  redirected(const redirected&) = delete;
  redirected& operator=(const redirected&) = delete;
  ~redirected() {
    ::dup2(before_, STDOUT_FILENO);
    ::close(before_);
  }

private:
  int before_;
};

constexpr int lines_each = 400;

void print_lines(int which) {
  for (int each = 0; each < lines_each; ++each)
    std::printf("line %d of %d %s\n", each, which, std::string(50, 'x').c_str());
}

std::size_t whole_lines_in(const files::path& file) {
  std::ifstream in(file);
  std::size_t found = 0;
  for (std::string line; std::getline(in, line);) {
    found += line.starts_with("line ") && line.ends_with(' ' + std::string(50, 'x')) ? 1U : 0U;
  }
  return found;
}

TEST(ProgramState, LinesOfAllWorkersAreWholeInAFileAlsoOfOnesThatDied) {
  const test::temporary_directory directory;
  const auto file = directory.path() / "lines";
  constexpr int tasks = 20;
  {
    const redirected out(file);
    const pool workers(test::quiet(2));
    std::vector<future<void>> all;
    for (int each = 0; each < tasks; ++each) all.push_back(workers.apply_async(print_lines, each));
    for (auto& each : all) each.get();
    end_worker(workers);
    end_worker(workers);
  }
  EXPECT_EQ(whole_lines_in(file), static_cast<std::size_t>(tasks) * lines_each);
}

}  // namespace
}  // namespace muster::program_state_test
