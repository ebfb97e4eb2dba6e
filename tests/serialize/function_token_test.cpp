// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/function_token.hpp>

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>

#include "processes.hpp"

namespace muster::function_token_test {
namespace {

int twice(int x) { return 2 * x; }
int thrice(int x) noexcept { return 3 * x; }

// A library as a program loads it, with a function int(int).
class plugin {
public:
  plugin() : handle_(::dlopen(MUSTER_TOKEN_PLUGIN, RTLD_NOW | RTLD_LOCAL)) {}
  plugin(const plugin&) = delete;
  plugin& operator=(const plugin&) = delete;
  ~plugin() { close(); }

  [[nodiscard]] auto function() const { return reinterpret_cast<int (*)(int)>(::dlsym(handle_, "negate")); }
  void close() {
    if (handle_ != nullptr) ::dlclose(std::exchange(handle_, nullptr));
  }
  // Whether anybody, the loader too, has it.
  static bool is_loaded() {
    auto* const found = ::dlopen(MUSTER_TOKEN_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
    if (found != nullptr) ::dlclose(found);
    return found != nullptr;
  }

private:
  void* handle_;
};

class FunctionToken : public testing::Test {
protected:
  module_directory directory() { return module_directory(entries_); }

  std::array<module_entry, module_directory_size> entries_{};
};

TEST_F(FunctionToken, LeadsBackToTheFunction) {
  token_encoder encoder(directory());
  token_decoder decoder(directory());
  EXPECT_EQ(decoder.decode<int(int)>(encoder.encode(&twice))(21), 42);
  EXPECT_EQ(decoder.decode<int(int)>(encoder.encode(&thrice))(5), 15);
}

TEST_F(FunctionToken, FunctionsOfTheExecutableAreInModuleZero) {
  token_encoder encoder(directory());
  EXPECT_EQ(static_cast<std::uint64_t>(encoder.encode(&twice)) >> 48U, 0U);
}

TEST_F(FunctionToken, AFunctionOfALibraryEntersItsModule) {
  token_encoder encoder(directory());
  token_decoder decoder(directory());
  int (*const absolute)(int) = &std::abs;
  const auto token = encoder.encode(absolute);
  EXPECT_EQ(static_cast<std::uint64_t>(token) >> 48U, 1U);
  EXPECT_EQ(decoder.decode<int(int)>(token)(-3), 3);
}

TEST_F(FunctionToken, ALibraryThatWasNamedStaysLoaded) {
  token_encoder encoder(directory());
  plugin library;
  ASSERT_NE(library.function(), nullptr);
  const auto token = encoder.encode(library.function());
  library.close();
  ASSERT_TRUE(plugin::is_loaded()) << "another may take its place, and its token";
  token_decoder decoder(directory());
  EXPECT_EQ(decoder.decode<int(int)>(token)(3), -3);
}

TEST_F(FunctionToken, ALibraryWhereATokenHasLedStaysLoaded) {
  const test::shared<std::array<module_entry, module_directory_size>> entries;
  const test::shared<function_token> token;
  const auto parent = test::spawn(1, [&](std::size_t) {
    const plugin library;
    token_encoder encoder{module_directory(*entries)};
    *token = encoder.encode(library.function());
    return 0;
  });
  ASSERT_EQ(parent->wait(0), exit_status::exited(0));
  token_decoder decoder{module_directory(*entries)};
  plugin library;
  const auto negate = decoder.decode<int(int)>(*token);
  library.close();
  ASSERT_TRUE(plugin::is_loaded()) << "the decoder leads there still";
  EXPECT_EQ(negate(3), -3);
}

TEST_F(FunctionToken, CodeOutsideOfAllModulesIsRefusedWithTheTable) {
  token_encoder encoder(directory());
  const auto nowhere = reinterpret_cast<void (*)()>(std::uintptr_t{64});
  try {
    static_cast<void>(encoder.encode(nowhere));
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::module_mismatch);
    EXPECT_THAT(failure.what(),
                testing::AllOf(testing::HasSubstr("no loaded module"), testing::HasSubstr("(executable)")));
  }
}

TEST_F(FunctionToken, AModuleThatTheReceiverLacksIsNamedAsSuch) {
  token_encoder encoder(directory());
  const auto token = encoder.encode(&twice);
  entries_[0].build_id.front() = static_cast<char>(entries_[0].build_id.front() + 1);
  token_decoder decoder(directory());
  try {
    static_cast<void>(decoder.decode<int(int)>(token));
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::module_mismatch);
    EXPECT_THAT(failure.what(), testing::HasSubstr("has not loaded the library"));
  }
}

TEST_F(FunctionToken, AnEmptyDirectoryEntryMatchesNothing) {
  token_decoder decoder(directory());
  EXPECT_THROW(static_cast<void>(decoder.decode<int(int)>(function_token{16})), error);
}

TEST_F(FunctionToken, AForgedTokenIsRefused) {
  token_encoder encoder(directory());
  token_decoder decoder(directory());
  const auto good = static_cast<std::uint64_t>(encoder.encode(&twice));
  const auto outside = static_cast<function_token>(good + (std::uint64_t{1} << 40U));
  const auto no_module = static_cast<function_token>(std::uint64_t{500} << 48U);
  for (const auto forged : {outside, no_module}) {
    try {
      static_cast<void>(decoder.decode<int(int)>(forged));
      FAIL();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::corrupted);
    }
  }
}

TEST_F(FunctionToken, NoBitCanBeFlipped) {
  token_encoder encoder(directory());
  token_decoder decoder(directory());
  const auto good = static_cast<std::uint64_t>(encoder.encode(&twice));
  for (unsigned bit = 0; bit < 64; ++bit) {
    const auto forged = static_cast<function_token>(good ^ std::uint64_t{1} << bit);
    EXPECT_THROW(static_cast<void>(decoder.decode<int(int)>(forged)), error) << bit;
  }
}

TEST_F(FunctionToken, AnOverwrittenDirectoryIsRestored) {
  token_encoder encoder(directory());
  const auto token = encoder.encode(&twice);
  EXPECT_FALSE(encoder.restore_directory());
  entries_[0].length = 7;
  EXPECT_TRUE(encoder.restore_directory());
  token_decoder decoder(directory());
  EXPECT_EQ(decoder.decode<int(int)>(token)(21), 42);
}

TEST_F(FunctionToken, EncodersThatShareADirectoryAllEnterModules) {
  token_encoder first(directory(), token_encoder::shared());
  token_encoder second(directory(), token_encoder::shared());
  EXPECT_EQ(first.executable(), second.executable());
  int (*const absolute)(int) = &std::abs;
  const auto token = second.encode(absolute);
  EXPECT_EQ(first.encode(absolute), token);
  EXPECT_NE(token_encoder::entry_of(token), second.executable());
  EXPECT_EQ(token_encoder::entry_of(first.encode(&twice)), first.executable());
  token_decoder decoder(directory());
  EXPECT_EQ(decoder.decode<int(int)>(token)(-21), 21);
}

TEST_F(FunctionToken, AnEntryWhoseProcessDiedWhileItWroteIsPassedOver) {
  entries_[0].length = module_entry::claimed;
  token_encoder encoder(directory(), token_encoder::shared());
  EXPECT_EQ(encoder.executable(), 1U);
  token_decoder decoder(directory());
  EXPECT_EQ(decoder.decode<int(int)>(encoder.encode(&twice))(21), 42);
  for (auto& each : entries_) each.length = module_entry::claimed;
  EXPECT_THROW(token_encoder(directory(), token_encoder::shared()), error) << "the directory is full";
}

TEST_F(FunctionToken, ThreadsMayEncodeAndDecodeAtOnce) {
  token_encoder encoder(directory());
  token_decoder decoder(directory());
  int (*const absolute)(int) = &std::abs;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int each = 0; each < 4; ++each) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        if (decoder.decode<int(int)>(encoder.encode(absolute))(-round) != round) ++wrong;
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace muster::function_token_test
