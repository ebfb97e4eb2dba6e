// SPDX-License-Identifier: BSL-1.0
// A model in each worker: dear to load, cheap to use, and with a memory of its own. Reads lines, scores them, and shows
// what the model of each worker has seen.
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <muster/pool/ctx_pool.hpp>

namespace {

// Stands for what one would load: weights of a network, a dictionary, a connection. It cannot be sent to a worker, so
// each worker makes its own.
class model {
public:
  model(std::string_view language, std::size_t worker) : worker_(worker) {
    for (const auto* const word : {"well", "good", "fast"}) weights_[word] = 1;
    for (const auto* const word : {"bad", "slow", "crash"}) weights_[word] = -1;
    if (language == "shouting") weights_["!"] = 1;
  }
  model(const model&) = delete;
  model& operator=(const model&) = delete;

  int score(const std::string& line) {
    const auto [found, is_new] = cache_.try_emplace(line, 0);
    if (!is_new) {
      ++hits_;
      return found->second;
    }
    for (const auto& [word, weight] : weights_) {
      if (line.find(word) != std::string::npos) found->second += weight;
    }
    return found->second;
  }

  [[nodiscard]] std::string report() const {
    return "worker " + std::to_string(worker_) + ": " + std::to_string(cache_.size()) + " lines scored, " +
           std::to_string(hits_) + " answered from memory";
  }

private:
  std::size_t worker_;
  std::map<std::string, int> weights_;
  std::map<std::string, int> cache_;
  std::size_t hits_ = 0;
};

int score(model& mine, const std::string& line) { return mine.score(line); }

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  const std::string language = argc > 1 ? argv[1] : "plain";
  const muster::ctx_pool<model> pool(
      muster::bind_front([](const std::string& which, std::size_t worker) { return model(which, worker); }, language),
      {.workers = 2});

  const std::vector<std::string> lines = {"it works well!", "slow, and then a crash", "nothing to say",
                                          "good and fast"};
  const auto scores = pool.map(score, lines);
  for (std::size_t index = 0; index < lines.size(); ++index) std::cout << scores[index] << "  " << lines[index] << '\n';

  // The same lines once more, all to one worker: it has a memory, and keeps it.
  for (int round = 0; round < 2; ++round) pool.on(1).map(score, lines);
  std::cout << pool.on(1).apply([](const model& mine) { return mine.report(); }) << '\n';

  // A worker that dies takes its memory along; the one in its place makes a model anew.
  try {
    pool.on(1).apply([](model&) { std::abort(); });
  } catch (const muster::worker_died& e) {
    std::cout << "a crash: " << e.status().signal() << '\n';
  }
  pool.on(1).map(score, lines);
  std::cout << pool.on(1).apply([](const model& mine) { return mine.report(); }) << '\n';
}
