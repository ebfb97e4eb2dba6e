// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/task_call.hpp>

#include <exception>
#include <string>

#include <gtest/gtest.h>

#include "queue_support.hpp"

namespace muster::task_call_test {
namespace {

using test::thread_world;

std::string repeat(std::string text, int times) {
  std::string all;
  for (; times > 0; --times) all += text;
  return all;
}

std::uint64_t large_number(std::uint64_t x) { return x + 1; }

TEST(TaskCall, RepliesOfEverySizeArrive) {
  thread_world world(1);
  world.start_workers();
  for (const int length : {0, 1, 8, 39, 40, 47, 48, 49, 200, 20000, 300000}) {
    auto& record = world.post<repeat>(std::string("x"), length);
    ASSERT_TRUE(world.tasks().wait(record));
    EXPECT_EQ(test::value_of<std::string>(world.tasks().take(record)), repeat("x", length));
  }
}

TEST(TaskCall, ArgumentsOfEverySizeArrive) {
  thread_world world(1);
  world.start_workers();
  for (const std::size_t length : {0U, 30U, 36U, 37U, 48U, 100U, 70000U}) {
    auto& record = world.post<repeat>(std::string(length, 'y'), 1);
    ASSERT_TRUE(world.tasks().wait(record));
    EXPECT_EQ(test::value_of<std::string>(world.tasks().take(record)), std::string(length, 'y'));
  }
}

TEST(TaskCall, EightBytesRideInTheFirstLine) {
  thread_world world(1);
  world.start_workers();
  auto& record = world.post<large_number>(std::uint64_t{1} << 60U);
  ASSERT_TRUE(world.tasks().wait(record));
  EXPECT_EQ(test::value_of<std::uint64_t>(world.tasks().take(record)), (std::uint64_t{1} << 60U) + 1);
}

TEST(TaskCall, AnErrorFitsIntoTheLineEvenWithoutMemory) {
  task_slot slot{};
  worker_line line{};
  worker_cache cache;
  std::vector<extent_map::word> no_extents;
  std::vector<block_descriptor> no_blocks;
  std::atomic<std::uint64_t> mark = 0;
  arena nothing(extent_map(no_extents, table_mark(mark)), block_table(no_blocks, table_mark(mark)), {}, unique_fd(),
                {});
  std::array<module_entry, module_directory_size> modules{};
  token_decoder functions{module_directory(modules)};
  const process_mark here;
  task_call call(slot, slot_word(), line, nothing, functions, cache, here);
  call.fail(error_info(errc::cancelled, std::string(1000, 'x')));
  const task_reply reply(std::as_bytes(std::span(slot.reply)).first(slot.reply_bytes), true);
  EXPECT_EQ(reply.error(), errc::out_of_memory);
}

struct without_text : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

// A value that cannot be encoded where it is made, for a reason without text.
struct unsayable {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(number);
    if (number < 0) throw without_text();
  }
  int number = 0;
};

unsayable refuse_to_say(int number) { return {.number = number}; }

TEST(TaskCall, AnExceptionWithoutTextOfASerializeFunctionArrives) {
  thread_world world(1);
  auto& record = world.post<refuse_to_say>(-1);
  world.start_workers();
  ASSERT_TRUE(world.tasks().wait(record));
  const auto reply = world.tasks().take(record);
  EXPECT_EQ(reply.error(), errc::not_serializable);
  EXPECT_EQ(reply.error().message(), "the result could not be encoded: (no text)");
}

}  // namespace
}  // namespace muster::task_call_test
