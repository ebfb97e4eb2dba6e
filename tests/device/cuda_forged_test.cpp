// SPDX-License-Identifier: BSL-1.0
// References to memory of a GPU, or of what stands in for one, that nobody can have sent who behaves.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/memory/detail/descriptor_name.hpp>
#include <muster/memory/domain.hpp>
#include <muster/serialize/detail/codec.hpp>

#include "device_heap.hpp"
#include "device_share.hpp"
#include "device_support.hpp"
#include "gpu_fixture.hpp"

namespace muster::cuda_forged_test {
namespace {

using detail::device_anchor;
using detail::device_tag;
using test::expect_error;

// What is attached is known by its place.
struct sender final : attachment_sink {
  std::uint64_t attach(const shared_block& what) override {
    blocks.push_back(what);
    return blocks.size() - 1;
  }
  std::vector<shared_block> blocks;
};

struct receiver final : attachment_source {
  explicit receiver(std::vector<shared_block> given) : blocks(std::move(given)) {}
  shared_block take(std::uint64_t place) override { return blocks.at(place); }
  std::vector<shared_block> blocks;
};

/// Layout: docs/formats/device_tensor.md.
class ForgedCudaTensor : public test::gpu_test {
protected:
  static constexpr std::size_t count_at = 4 + 8 + 8;  // behind the header and two names
  static constexpr std::size_t tag = 0;
  static constexpr std::size_t anchor = 1;

  void SetUp() override {
    test::gpu_test::SetUp();
    if (IsSkipped()) return;
    sent_ = tensor::full<float>({1000}, 3, device::cuda(0));
    bytes_.resize(codec<tensor>::size_with(sent_).bytes);
    sender out;
    codec<tensor>::encode_with(bytes_, &out, sent_);
    blocks_ = std::move(out.blocks);
    ASSERT_EQ(blocks_.size(), 2U);
  }
  void TearDown() override {
    sent_ = {};
    blocks_.clear();
    test::gpu_test::TearDown();
  }

  // What was sent has changed: this much of one of its blocks, as the change leaves it.
  template <class Content, class Change>
  void forge(std::size_t which, const Change& change) {
    Content content;
    std::memcpy(static_cast<void*>(&content), blocks_[which].data(), sizeof content);
    change(content);
    blocks_[which] = domain::of_program()->blocks().allocate_shared(sizeof content);
    std::memcpy(blocks_[which].data(), static_cast<const void*>(&content), sizeof content);
  }
  void forge_tag(const auto& change) { forge<device_tag>(tag, change); }
  void forge_count(std::uint64_t count) { std::memcpy(bytes_.data() + count_at, &count, sizeof count); }
  template <class Content>
  void shorten(std::size_t which) {
    blocks_[which] = domain::of_program()->blocks().allocate_shared(8);
    ASSERT_LT(blocks_[which].size(), sizeof(Content));
  }

  [[nodiscard]] tensor load() const {
    receiver in(blocks_);
    return std::get<0>(codec<tensor>::decode(bytes_, &in));
  }
  void expect_corrupted(const auto&... parts) const {
    expect_error(errc::corrupted, [&] { static_cast<void>(load()); }, parts...);
    expect_nothing_broke();
  }
  // It is opened when it is used first.
  void expect_unusable(errc kind, const auto&... parts) const {
    const auto loaded = load();
    expect_error(kind, [&] { static_cast<void>(loaded.to(device::cpu())); }, parts...);
    expect_nothing_broke();
  }
  void expect_nothing_broke() const { EXPECT_TRUE(equal(sent_, tensor::full<float>({1000}, 3))); }

  tensor sent_;
  std::vector<std::byte> bytes_;
  std::vector<shared_block> blocks_;
};

TEST_F(ForgedCudaTensor, UnchangedItIsWhatWasSent) {
  forge_tag([](device_tag&) {});
  EXPECT_TRUE(equal(load(), sent_));
  EXPECT_EQ(load().device_address(), sent_.device_address());
}

TEST_F(ForgedCudaTensor, ATagThatIsNoneIsRefused) {
  const auto real = blocks_;
  forge_tag([](device_tag& it) { it.magic += 1; });
  expect_corrupted("its tag is none", "misbehaves");
  blocks_ = real;
  forge_tag([](device_tag& it) { it.means = static_cast<detail::sharing_means>(7); });
  expect_corrupted("shared by means 7");
  blocks_ = real;
  shorten<device_tag>(tag);
  expect_corrupted("its tag has");
}

TEST_F(ForgedCudaTensor, APieceOutsideOfItsExtentIsRefused) {
  const auto real = blocks_;
  const std::vector<void (*)(device_tag&)> changes = {
      [](device_tag& it) { it.offset += 1; },
      [](device_tag& it) { it.offset = it.extent_bytes; },
      [](device_tag& it) { it.offset = it.extent_bytes + detail::device_heap::piece_alignment; },
      [](device_tag& it) { it.bytes = it.extent_bytes - it.offset + 1; },
      [](device_tag& it) { it.bytes = std::numeric_limits<std::uint64_t>::max(); },
      [](device_tag& it) { it.extent_bytes = 0; }};
  for (const auto change : changes) {
    blocks_ = real;
    forge_tag(change);
    expect_corrupted("were to lie in an extent of");
  }
}

TEST_F(ForgedCudaTensor, ElementsOutsideOfItsPieceAreRefused) {
  forge_tag([](device_tag& it) { it.bytes = 3999; });
  expect_corrupted("3999 bytes", "(1000,)");
}

TEST_F(ForgedCudaTensor, AnExtentOfAnotherSizeIsRefused) {
  forge_tag([](device_tag& it) { it.extent_bytes *= 2; });
  expect_unusable(errc::corrupted, "its extent has");
}

TEST_F(ForgedCudaTensor, ACountThatNobodyReachesIsRefused) {
  forge_count(device_anchor::broken_count);
  expect_corrupted("its count is");
  forge_count(std::numeric_limits<std::uint64_t>::max());
  expect_corrupted("its count is");
}

TEST_F(ForgedCudaTensor, AnAnchorThatIsNoneIsRefused) {
  shorten<device_anchor>(anchor);
  expect_corrupted("its anchor has");
}

TEST_F(ForgedCudaTensor, WhatAProcessThatIsGoneHadIsNotThereAnyMore) {
  forge_tag([](device_tag& it) {
    const descriptor_name name(it.extent);
    it.extent = descriptor_name(name.depositor(), name.incarnation() + 1, name.number()).bits();
    it.owner = 4242;
  });
  expect_unusable(errc::peer_lost, "cuda:0", "process 4242", "not there any more");
}

TEST_F(ForgedCudaTensor, ADeviceThatIsNotHereIsNamedAsSuch) {
  forge_tag([](device_tag& it) { it.uuid.fill(std::byte{0xee}); });
  expect_unusable(errc::invalid_argument, "this process does not see", "CUDA_VISIBLE_DEVICES");
}

}  // namespace
}  // namespace muster::cuda_forged_test
