// SPDX-License-Identifier: BSL-1.0
// What a program pays a compiler for muster's headers.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "workloads.hpp"

namespace bench {

namespace {

namespace fs = std::filesystem;

/// A source in a folder of its own.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class source_file {
public:
  explicit source_file(const std::string& text) {
    std::string name = (fs::temp_directory_path() / "muster-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp of " + name + " failed");
    folder_ = name;
    std::ofstream(path()) << text;
  }
  source_file(const source_file&) = delete;
  source_file& operator=(const source_file&) = delete;
  ~source_file() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  [[nodiscard]] fs::path path() const { return folder_ / "program.cpp"; }

private:
  fs::path folder_;
};

std::string compiler_with(const std::string& arguments) {
  return std::string(MUSTER_COMPILER) + " -std=c++20 " + MUSTER_INCLUDES + " " + arguments;
}

std::chrono::nanoseconds time_to_compile(const source_file& source) {
  const auto command = compiler_with("-O2 -c -o /dev/null " + source.path().string());
  return time_of([&] {
    if (std::system(command.c_str()) != 0) throw std::runtime_error("'" + command + "' failed");
  });
}

side compiled(const std::string& name, const std::string& text) {
  const auto source = std::make_shared<source_file>(text);
  return {.name = name, .once = [source] { return time_to_compile(*source); }};
}

// The first program of README.md.
std::string readme_program() {
  std::ifstream file(MUSTER_README);
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  const std::string opening = "```cpp\n";
  const auto begin = text.find(opening);
  const auto end = text.find("```", begin + opening.size());
  if (begin == std::string::npos || end == std::string::npos) throw std::runtime_error("README.md has no program");
  return text.substr(begin + opening.size(), end - begin - opening.size());
}

const std::string standard_headers = "#include <cstdlib>\n#include <iostream>\n#include <vector>\nint main() {}\n";

// A compiler takes seconds: few rounds tell enough.
effort few(const effort& how) {
  effort fewer = how;
  fewer.rounds = std::min<decltype(how.rounds)>(how.rounds, 7);
  return fewer;
}

row compile_readme(const effort& how) {
  return compare("compile_readme", few(how), compiled("README.md's program", readme_program()),
                 compiled("its standard headers", standard_headers));
}

std::string eight_calls() {
  std::string text = "#include <muster/pool/pool.hpp>\nvoid calls(const muster::pool& pool, std::vector<int>& xs) {\n";
  for (const std::string number : {"1", "2", "3", "4"}) {
    text += "  xs = pool.map([](int x) { return x + " + number + "; }, xs);\n";
    text += "  xs.push_back(pool.apply([](int x) { return x * " + number + "; }, 7));\n";
  }
  return text + "}\nint main() {}\n";
}

row compile_8_calls(const effort& how) {
  return compare("compile_8_calls", few(how), compiled("four maps and four applies", eight_calls()),
                 compiled("the README's standard headers", standard_headers));
}

// Of the preprocessor's output.
double lines_of(const std::string& header) {
  const source_file source("#include <" + header + ">\n");
  const auto command = compiler_with("-E " + source.path().string() + " | wc -l");
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  long lines = 0;
  if (pipe == nullptr || std::fscanf(pipe.get(), "%ld", &lines) != 1) {
    throw std::runtime_error("'" + command + "' failed");
  }
  return static_cast<double>(lines);
}

workload lines_row(const std::string& name, const std::string& header, double most) {
  return {.name = name,
          .run = [=](const effort&) { return amount(name, "lines", lines_of(header), most); },
          .needs_two_processors = false};
}

}  // namespace

std::vector<workload> compiling() {
  return {{.name = "compile_readme", .run = compile_readme, .needs_two_processors = false},
          {.name = "compile_8_calls", .run = compile_8_calls, .needs_two_processors = false},
          lines_row("lines_pool", "muster/pool/pool.hpp", 100'000),
          lines_row("lines_event", "muster/queue/event.hpp", 90'000),
          lines_row("lines_queue", "muster/queue/shared_queue.hpp", 90'000),
          lines_row("lines_tensor", "muster/device/tensor.hpp", 75'000),
          lines_row("lines_group", "muster/collectives/group.hpp", 85'000),
          lines_row("lines_world", "muster/parallel/world.hpp", 110'000)};
}

}  // namespace bench
