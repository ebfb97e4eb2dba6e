// SPDX-License-Identifier: BSL-1.0
#pragma once

// Queues in forked processes that take part in the program's domain.

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/message_queue.hpp>
#include <muster/serialize/detail/codec.hpp>

#include "memory_state.hpp"
#include "processes.hpp"

namespace muster::test {

/// A value that may have a block of shared memory, and may be too long for a cell.
struct parcel {
  std::uint64_t number = 0;
  std::string text;
  std::vector<shared_block> blocks;

  void save(output_archive& out) const {
    const std::uint64_t count = blocks.size();
    out(number, text, count);
    for (const auto& each : blocks) out.attach(each);
  }
  void load(input_archive& in) {
    std::uint64_t count = 0;
    in(number, text, count);
    in.expect(count, sizeof(std::uint64_t));
    for (std::uint64_t index = 0; index < count; ++index) blocks.push_back(in.take_attachment());
  }

  /// Of which every block says what number it belongs to.
  static parcel of(std::uint64_t number, std::size_t blocks = 0, std::string text = {}) {
    parcel made{.number = number, .text = std::move(text), .blocks = {}};
    for (std::size_t index = 0; index < blocks; ++index) {
      made.blocks.push_back(domain::of_program()->blocks().allocate_shared(100));
      std::snprintf(reinterpret_cast<char*>(made.blocks.back().data()), 100, "block of %zu", std::size_t{number});
    }
    return made;
  }
  [[nodiscard]] bool is_whole() const {
    const auto expected = "block of " + std::to_string(number);
    for (const auto& each : blocks) {
      if (expected != reinterpret_cast<const char*>(each.data())) return false;
    }
    return true;
  }
};

/// How a queue gets into a forked process, once.
template <class Queue>
class ticket final : public attachment_sink, public attachment_source {
public:
  explicit ticket(const Queue& queue) : frame_(codec<Queue>::size_with(queue).bytes) {
    codec<Queue>::encode_with(frame_, this, queue);
  }
  [[nodiscard]] Queue redeem() { return std::get<0>(codec<Queue>::decode(frame_, this)); }

  [[nodiscard]] const std::vector<std::byte>& frame() const { return frame_; }

  /// Lets go of it, if nobody has redeemed it.
  void cancel() {
    try {
      domain::of_program()->blocks().receive(sent_).reset();
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): somebody has
    }
  }

  std::uint64_t attach(const shared_block& what) override {
    sent_ = domain::of_program()->blocks().send(what);
    return sent_;
  }
  shared_block take(std::uint64_t name) override { return domain::of_program()->blocks().receive(name); }

private:
  std::uint64_t sent_ = 0;
  std::vector<std::byte> frame_;
};

/// The memory of a queue, as whoever has it mapped can write to it.
template <class Queue>
[[nodiscard]] shared_block memory_of(const Queue& queue) {
  class thief final : public attachment_sink {
  public:
    std::uint64_t attach(const shared_block& what) override {
      found = what;
      return 0;
    }
    shared_block found;
  } memory;
  std::vector<std::byte> frame(codec<Queue>::size_with(queue).bytes);
  codec<Queue>::encode_with(frame, &memory, queue);
  return memory.found;
}

/// The word so many bytes behind a queue's beginning; layout: docs/formats/queue.md.
[[nodiscard]] inline std::atomic<std::uint64_t>& word_at(const shared_block& memory, std::size_t offset) {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory.data() + offset);
}

/// A fork of this process that takes part in the program's domain, and has a queue.
template <class Queue>
class member {
public:
  member(const Queue& queue, const std::function<int(Queue&)>& run)
      : domain_(domain::of_program()), id_(domain_->participants().enrol()), admission_(queue) {
    process_ = spawn(1, [&](std::size_t) {
      const auto joined = std::make_shared<domain>(
          domain_files{.control = duplicate(domain_->files().control), .arena = duplicate(domain_->files().arena)},
          id_);
      domain::enter(joined);
      auto mine = admission_.redeem();
      return run(mine);
    });
  }
  member(const member&) = delete;
  member& operator=(const member&) = delete;
  ~member() {
    if (!buried_) kill();
  }

  void kill() {
    process_->kill(0);
    static_cast<void>(end());
  }
  /// Waits for its end, and recovers what it had.
  exit_status end() {
    const auto found = process_->wait(0);
    domain_->bury(id_);
    admission_.cancel();
    domain_->keepsakes().tidy();
    buried_ = true;
    return found;
  }
  [[nodiscard]] processes& process() const { return *process_; }

private:
  static unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }

  std::shared_ptr<domain> domain_;
  participant_id id_;
  ticket<Queue> admission_;
  std::unique_ptr<processes> process_;
  bool buried_ = false;
};

}  // namespace muster::test
