// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/batch.hpp>

#include <list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/memory/domain.hpp>

namespace muster::detail::batch_test {
namespace {

class Batch : public testing::Test {
protected:
  template <class T>
  static std::vector<T> read(const packed_batch& packed) {
    const auto& batch = packed.memory;
    batch_header header;
    std::memcpy(&header, batch.data(), sizeof header);
    std::vector<T> all;
    for (std::size_t index = 0; index < header.count; ++index) {
      all.push_back(read_element<T>(batch.bytes().subspan(header.elements_offset), index));
    }
    return all;
  }

  domain domain_{{.arena_bytes = std::size_t{16} << 20U}};
  arena& memory_ = domain_.blocks();
};

TEST_F(Batch, PlainElementsComeBack) {
  const std::vector<int> elements = {1, 2, 3};
  EXPECT_EQ(read<int>(make_batch<int, int>(memory_, elements.begin(), elements.size())), elements);
  const std::list<double> scattered = {1.5, 2.5};
  EXPECT_EQ(read<double>(make_batch<double, void>(memory_, scattered.begin(), scattered.size())),
            (std::vector<double>{1.5, 2.5}));
}

TEST_F(Batch, EncodedElementsComeBack) {
  const std::vector<std::string> elements = {"one", "", std::string(1000, 'x'), "four"};
  EXPECT_EQ(read<std::string>(make_batch<std::string, int>(memory_, elements.begin(), elements.size())), elements);
}

TEST_F(Batch, BitsComeBack) {
  const std::vector<bool> elements = {true, false, true};
  EXPECT_EQ(read<bool>(make_batch<bool, void>(memory_, elements.begin(), elements.size())), elements);
}

TEST_F(Batch, AnEmptyOneHasNoElements) {
  const std::vector<std::string> none;
  EXPECT_TRUE(read<std::string>(make_batch<std::string, int>(memory_, none.begin(), 0)).empty());
}

TEST_F(Batch, ResultsOfKnownSizeHaveTheirRoom) {
  const std::vector<char> elements(100);
  const block batch = make_batch<char, double>(memory_, elements.begin(), elements.size()).memory;
  batch_header header;
  std::memcpy(&header, batch.data(), sizeof header);
  EXPECT_EQ(header.results_offset % batch_alignment, 0U);
  EXPECT_GE(batch.size(), header.results_offset + 100 * sizeof(double));
}

TEST_F(Batch, AnElementWhoseBytesAreCutIsAnError) {
  const std::vector<std::string> elements = {std::string(100, 'x')};
  const block batch = make_batch<std::string, void>(memory_, elements.begin(), 1).memory;
  batch_header header;
  std::memcpy(&header, batch.data(), sizeof header);
  const auto at = batch.bytes().subspan(header.elements_offset);
  const std::uint64_t earlier = 32;
  std::memcpy(at.data() + 8, &earlier, sizeof earlier);  // the end of the first element
  EXPECT_THROW(static_cast<void>(read_element<std::string>(at, 0)), error);
}

}  // namespace
}  // namespace muster::detail::batch_test
