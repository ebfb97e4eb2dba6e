// SPDX-License-Identifier: BSL-1.0
#include "redis_peer.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace bench {

namespace {

constexpr const char* program = "/usr/bin/redis-server";

std::string new_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "muster-redis-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  return name;
}

pid_t start_server(const std::string& directory) {
  std::vector<std::string> words = {
      program,        "--port", "0",     "--unixsocket", directory + "/socket", "--save",          "",
      "--appendonly", "no",     "--dir", directory,      "--logfile",           directory + "/log"};
  std::vector<char*> arguments;
  for (auto& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  pid_t made = 0;
  if (::posix_spawn(&made, program, nullptr, nullptr, arguments.data(), environ) != 0) {
    throw std::runtime_error("redis-server could not be started");
  }
  return made;
}

}  // namespace

std::string redis_peer::hindrance() {
  return std::filesystem::exists(program) ? "" : "peer missing: there is no redis-server: scripts/bench installs it";
}

// "Redis server v=7.0.15 sha=…"
std::string redis_peer::version() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen("/usr/bin/redis-server --version", "r"), ::pclose);
  std::string line(256, '\0');
  line.resize(std::fread(line.data(), 1, line.size(), pipe.get()));
  const auto begin = line.find("v=") + 2;
  return line.substr(begin, line.find(' ', begin) - begin);
}

redis_peer::redis_peer(std::size_t bytes)
    : directory_(new_directory()), server_(start_server(directory_)), value_(bytes, 'x') {
  connect();
  send("*3\r\n$3\r\nSET\r\n$1\r\nw\r\n$" + std::to_string(bytes) + "\r\n" + std::string(value_.begin(), value_.end()) +
       "\r\n");
  if (read_line() != "+OK") throw std::runtime_error("Redis did not take the value");
}

redis_peer::~redis_peer() {
  ::kill(server_, SIGTERM);
  ::waitpid(server_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

// It says nowhere that it listens.
void redis_peer::connect() {
  const boost::asio::local::stream_protocol::endpoint where(directory_ + "/socket");
  for (int tried = 0;; ++tried) {
    boost::system::error_code failure;
    socket_.connect(where, failure);
    if (!failure) return;
    if (tried == 1000) throw std::runtime_error("Redis does not answer: " + failure.message());
    socket_.close();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void redis_peer::send(const std::string& what) { boost::asio::write(socket_, boost::asio::buffer(what)); }

std::string redis_peer::read_line() {
  std::string line;
  for (;;) {
    char next = 0;
    read(&next, 1);
    if (next == '\n') return line;
    if (next != '\r') line += next;
  }
}

void redis_peer::read(char* room, std::size_t bytes) { boost::asio::read(socket_, boost::asio::buffer(room, bytes)); }

void redis_peer::get(std::size_t count) {
  for (std::size_t each = 0; each < count; ++each) {
    send("*2\r\n$3\r\nGET\r\n$1\r\nw\r\n");
    if (read_line() != "$" + std::to_string(value_.size())) throw std::runtime_error("Redis has not the value");
    read(value_.data(), value_.size());
    static_cast<void>(read_line());
  }
}

}  // namespace bench
