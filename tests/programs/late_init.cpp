// SPDX-License-Identifier: BSL-1.0
// What stands before muster::init runs in every worker; who starts threads there is told, once.
#include <unistd.h>

#include <array>
#include <latch>
#include <string>
#include <thread>

#include <muster/pool/pool.hpp>

#include "check.hpp"

namespace {

std::string read_all(int descriptor) {
  std::string all;
  std::array<char, 512> piece;
  for (ssize_t got = 0; (got = ::read(descriptor, piece.data(), piece.size())) > 0;) {
    all.append(piece.data(), static_cast<std::size_t>(got));
  }
  return all;
}

std::size_t count(const std::string& text, std::string_view wanted) {
  std::size_t found = 0;
  for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++found;
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  std::array<int, 2> ends{};
  const bool is_program = ::getenv("MUSTER_WORKER") == nullptr;
  const int err = ::dup(STDERR_FILENO);
  if (is_program) {
    check(::pipe(ends.data()) == 0, "a pipe");
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
  }
  std::latch end(1);
  std::thread early([&] { end.wait(); });
  muster::init(argc, argv);
  muster::init(argc, argv);  // and not again
  {
    const muster::pool pool({.workers = 2});
    check(pool.apply([](int number) { return number + 1; }, 41) == 42, "the pool serves");
  }
  end.count_down();
  early.join();
  ::dup2(err, STDERR_FILENO);
  const auto said = read_all(ends[0]);
  // ThreadSanitizer has one of its own, from the program's first on.
  check(count(said, "init was called when 1 of the program's threads") +
                count(said, "init was called when 2 of the program's threads") ==
            1,
        said);
  check(count(said, "first line of main()") == 1, said);
  return 0;
}
