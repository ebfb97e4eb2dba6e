// SPDX-License-Identifier: BSL-1.0
// frames: a producer process draws pictures, worker processes filter them in place, this process writes the last one.
// The pictures lie in shared memory and never move; what goes from process to process are their names.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <muster/pool/pool.hpp>
#include <muster/pool/process.hpp>

#include "picture.hpp"
#include "stages.hpp"

namespace frames {
namespace {

struct settings {
  std::string picture;
  std::string output = "frames.ppm";
  std::size_t count = 200;
  std::size_t ring = 8;
  unsigned workers = 2;
  std::size_t rows = 480;
  std::size_t columns = 640;
};

// What this process saw of all hand-overs.
struct tally {
  std::size_t frames = 0;
  std::size_t copied_bytes = 0;
  std::size_t damaged = 0;

  // A frame is where it was made, and holds what another process wrote there last; or else it is a copy.
  void add(const frame& seen, const std::vector<muster::tensor>& ring) {
    ++frames;
    const auto is_it = [&](const muster::tensor& each) { return each.data() == seen.pixels.data(); };
    const bool in_place = std::any_of(ring.begin(), ring.end(), is_it) && seen.writer != ::getpid();
    if (!in_place) copied_bytes += seen.pixels.nbytes();
    if (checksum_of(seen.pixels) != seen.checksum) ++damaged;
  }
};

// Who makes frames, and who filters them, to the end of their tasks.
struct crew {
  const muster::process& producer;
  std::vector<muster::future<std::size_t>> filters;

  // Where one has failed, the others go on with what it was at.
  [[nodiscard]] bool have_all_filters_ended() {
    const auto has_ended = [](auto& filter) { return filter.wait_for(std::chrono::seconds(0)); };
    return std::all_of(filters.begin(), filters.end(), has_ended);
  }
  [[noreturn]] void throw_what_they_failed_of() {
    for (auto& each : filters) each.get();
    throw std::runtime_error("the filters have ended, and frames are missing");
  }
};

// Waits for the next filtered frame; says why there will be none if the producer fails, or all filters.
frame take(const frame_queue& filtered, crew& others) {
  for (;;) {
    if (auto next = filtered.pop_for(std::chrono::seconds(1))) return std::move(*next);
    const bool are_over = others.have_all_filters_ended();  // first: the last one may have pushed just now
    if (auto next = filtered.try_pop()) return std::move(*next);
    others.producer.watch();
    if (are_over) others.throw_what_they_failed_of();
  }
}

tally consume(const settings& given, const std::vector<muster::tensor>& ring, const frame_queue& empty,
              const frame_queue& filtered, crew& others) {
  tally seen;
  while (seen.frames < given.count) {
    auto next = take(filtered, others);
    seen.add(next, ring);
    if (seen.frames == given.count) write_picture(given.output, next.pixels);
    empty.push(next);
  }
  return seen;
}

int run(const settings& given) {
  const auto picture = given.picture.empty() ? render_picture(given.rows, given.columns) : read_picture(given.picture);
  const frame_queue empty(given.ring);
  const frame_queue drawn(given.ring);
  const frame_queue filtered(given.ring);
  std::vector<muster::tensor> ring;
  ring.reserve(given.ring);
  for (std::size_t index = 0; index < given.ring; ++index) {
    ring.push_back(muster::tensor::empty<std::uint8_t>(picture.shape()));
    empty.push({.pixels = ring.back()});
  }

  const muster::pool pool({.workers = given.workers});
  const auto start = std::chrono::steady_clock::now();
  const muster::process producer(draw_frames, picture, given.count, empty, drawn);
  crew others{.producer = producer, .filters = {}};
  for (unsigned worker = 0; worker < given.workers; ++worker) {
    others.filters.push_back(pool.apply_async(filter_frames, drawn, filtered));
  }
  const auto seen = consume(given, ring, empty, filtered, others);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

  std::cout << seen.frames << " frames of " << picture.shape()[1] << " by " << picture.shape()[0] << " pixels ("
            << picture.nbytes() / 1024 << " KiB), filtered by";
  for (auto& each : others.filters) std::cout << ' ' << each.get();
  std::cout << " in " << given.workers << " workers\n"
            << static_cast<long>(static_cast<double>(seen.frames) / elapsed.count()) << " frames per second\n"
            << "copied per hand-over: " << seen.copied_bytes / seen.frames << " bytes\n"
            << "the last one: " << given.output << '\n';
  if (seen.damaged > 0) throw std::runtime_error(std::to_string(seen.damaged) + " frames were not what was sent");
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace frames

int main(int argc, char** argv) {
  muster::init(argc, argv);
  frames::settings given;
  CLI::App app("Draws pictures in one process, filters them in others, and writes the last one: nothing is copied.");
  app.add_option("picture", given.picture, "A binary PPM or PGM file; without one a picture is rendered");
  app.add_option("-o,--output", given.output, "Where the last frame is written, as PPM")->capture_default_str();
  app.add_option("-n,--frames", given.count, "How many")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("-r,--ring", given.ring, "Pictures under way")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("-w,--workers", given.workers, "Processes that filter")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return frames::run(given);
  } catch (const std::exception& problem) {
    std::cerr << "frames: " << problem.what() << '\n';
    return EXIT_FAILURE;
  }
}
