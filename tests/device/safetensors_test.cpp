// SPDX-License-Identifier: BSL-1.0
#include <muster/device/safetensors.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <complex>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/text.hpp>
#include <muster/device/float16.hpp>
#include <muster/device/tensor_compare.hpp>

#include "device_support.hpp"
#include "temporary_directory.hpp"

namespace muster::safetensors_test {
namespace {

using test::expect_refused;

class Safetensors : public testing::Test {
protected:
  [[nodiscard]] std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set_content(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  // A file with that header, and elements behind it.
  void set_header(const std::string& json, const std::string& elements = {}) const {
    std::string length(8, '\0');
    length[0] = static_cast<char>(json.size());
    set_content(length + json + elements);
  }
  void expect_refused_file(const std::string& why) const { expect_refused_as(errc::corrupted, why); }
  void expect_refused_as(errc code, const std::string& why) const {
    try {
      static_cast<void>(read_safetensors(path_));
      FAIL() << "it was read; expected: " << why;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), code);
      EXPECT_NE(std::string(failure.what()).find(why), std::string::npos) << failure.what();
      EXPECT_NE(std::string(failure.what()).find(path_), std::string::npos) << failure.what();
    }
  }

  test::temporary_directory where_;
  std::string path_ = where_.path() / "model.safetensors";
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  const safetensors written{.tensors = {{"w", tensor::arange<float>(12).reshape({3, 4})},
                                        {"b \"quoted\" ä", tensor::full<f16>({5}, f16(0.5F))},
                                        {"bf", tensor::full<bf16>({2, 1}, bf16(3.0F))},
                                        {"flags", tensor::ones<bool>({3})},
                                        {"i8", tensor::full<std::int8_t>({1}, -1)},
                                        {"u64", tensor::full<std::uint64_t>({2}, ~std::uint64_t{0})},
                                        {"f64", tensor::full<double>({}, 0.1)},
                                        {"c64", tensor::full<std::complex<float>>({2}, {1, -2})},
                                        {"none", tensor::zeros<std::int16_t>({0, 3})}},
                            .metadata = {{"format", "pt"}, {"of", "line\nbreak"}}};
  write_safetensors(path_, written);
  const auto read = read_safetensors(path_);
  EXPECT_EQ(read.tensors.size(), written.tensors.size());
  for (const auto& [name, value] : written.tensors) {
    ASSERT_TRUE(read.contains(name)) << name;
    EXPECT_TRUE(equal(read.at(name), value)) << name;
    EXPECT_TRUE(read.at(name).is_shared() || value.size() == 0) << name;
  }
  EXPECT_EQ(read.metadata, written.metadata);
}

// As the format's documentation has it.
TEST_F(Safetensors, TheBytesAreTheFormats) {
  write_safetensors(path_, {.tensors = {{"a", tensor::from({std::uint8_t{7}, std::uint8_t{8}}, {2})},
                                        {"x", tensor::from({1.0F}, {1})}}});
  const std::string json = R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                           R"("a":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})";
  const auto length = (json.size() + 7) / 8 * 8;
  std::string expected(8, '\0');
  expected[0] = static_cast<char>(length);
  expected += json + std::string(length - json.size(), ' ');
  expected += std::string("\x00\x00\x80\x3f\x07\x08", 6);
  EXPECT_EQ(content(), expected);
}

TEST_F(Safetensors, WhatIsStridedOrReadOnlyIsWrittenInARow) {
  const auto whole = tensor::arange<int>(0, 12).reshape({3, 4});
  write_safetensors(path_, {.tensors = {{"t", whole.transpose()}, {"r", whole.slice(0, 2).as_read_only()}}});
  const auto read = read_safetensors(path_);
  EXPECT_TRUE(equal(read.at("t"), whole.transpose()));
  EXPECT_TRUE(equal(read.at("r"), whole.slice(0, 2)));
}

TEST_F(Safetensors, AFileOfNothingIsRead) {
  write_safetensors(path_, {.tensors = {}});
  const auto read = read_safetensors(path_);
  EXPECT_TRUE(read.tensors.empty());
  EXPECT_TRUE(read.metadata.empty());
  expect_refused([&] { static_cast<void>(read.at("w")); }, "'w'", "none");
}

TEST_F(Safetensors, WhatTheFormatHasNotIsRefusedAndTheOldFileStays) {
  write_safetensors(path_, {.tensors = {{"w", tensor::ones<float>({2})}}});
  const auto before = content();
  const auto one = tensor::ones<float>({1});
  const auto refuse = [&](const safetensors& what, const std::string& why) {
    expect_refused([&] { write_safetensors(path_, what); }, why.c_str(), path_.c_str());
    EXPECT_EQ(content(), before);
  };
  refuse({.tensors = {{"z", tensor::zeros<std::complex<double>>({1})}}}, "c128");
  refuse({.tensors = {{"w", one}, {"w", one}}}, "two tensors 'w'");
  refuse({.tensors = {{"__metadata__", one}}}, "__metadata__");
  refuse({.tensors = {{"\xff", one}}}, "UTF-8");
}

TEST_F(Safetensors, ATornFileIsRefusedWhereverItEnds) {
  write_safetensors(path_, {.tensors = {{"w", tensor::arange<float>(10)}, {"b", tensor::ones<bool>({3})}}});
  const auto whole = content();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    set_content(whole.substr(0, length));
    expect_refused_file("no whole safetensors file");
  }
  set_content(whole + "x");
  expect_refused_file("more than its header says");
}

TEST_F(Safetensors, AForeignFileIsRefusedWithWhatIsWrong) {
  set_content(
      "\x7f"
      "ELF and more of that");
  expect_refused_file("its header would take");
  set_header("[]");
  expect_refused_file("is no object");
  set_header("{\"w\": ");
  expect_refused_file("is no JSON");
  set_header(R"({"__metadata__":{"a":1}})");
  expect_refused_file("'a' is no text");
  set_header(
      R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
      "1234");
  expect_refused_file("");
}

TEST_F(Safetensors, AnEntryThatCannotBeIsRefusedWithWhatIsWrong) {
  struct forged_entry {
    const char* dtype;
    const char* shape;
    const char* offsets;
    const char* why;
  };
  const auto set_entry = [&](const forged_entry& of) {
    set_header(text(R"({"w":{"dtype":)", of.dtype, R"(,"shape":)", of.shape, R"(,"data_offsets":)", of.offsets, "}}"),
               "1234");
  };
  set_entry({R"("F32")", "[1]", "[0,4]", "nothing"});
  EXPECT_EQ(read_safetensors(path_).tensors.size(), 1U);
  for (const auto& each :
       std::initializer_list<forged_entry>{{R"("F8_E4M3")", "[4]", "[0,4]", "'w' is of dtype F8_E4M3"},
                                           {"3", "[1]", "[0,4]", "has no dtype"},
                                           {R"("F32")", "[2]", "[0,4]", "is not what f32 (2,) takes"},
                                           {R"("F32")", "[1]", "[4,0]", "bytes 4 to 0"},
                                           {R"("F32")", "[-1]", "[0,4]", "that is no size"},
                                           {R"("F32")", "[1.0]", "[0,4]", "that is no size"},
                                           {R"("F32")", "[4294967296,4294967296,4294967296]", "[0,4]", "bytes 0 to 4"},
                                           {R"("F32")", "[1,1,1,1,1,1,1,1,1]", "[0,4]", "9 dimensions"},
                                           {R"("U8")", "[2]", "[2,4]", "begins at byte 2"},
                                           {R"("U8")", "[2]", "[0,2]", "more than its header says"},
                                           {R"("F32")", "1", "[0,4]", "has no shape"},
                                           {R"("F32")", "[1]", "[0,4,4]", "two data_offsets"}}) {
    set_entry(each);
    expect_refused_file(each.why);
  }
}

TEST_F(Safetensors, AMissingFileIsTheSystemsError) {
  try {
    static_cast<void>(read_safetensors(path_));
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), std::error_code(ENOENT, std::system_category()));
    EXPECT_NE(std::string(failure.what()).find(path_), std::string::npos);
  }
  path_ = where_.path();
  expect_refused_file("no regular file");
  path_ = where_.path() / "pipe";
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_refused_file("no regular file");
}

}  // namespace
}  // namespace muster::safetensors_test
