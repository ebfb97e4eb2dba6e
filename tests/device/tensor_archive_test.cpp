// SPDX-License-Identifier: BSL-1.0
#include <muster/device/tensor.hpp>

#include <unistd.h>

#include <cstring>
#include <random>
#include <span>

#include <muster/memory/domain.hpp>
#include <muster/serialize/detail/codec.hpp>

#include "device_support.hpp"

namespace muster::tensor_archive_test {
namespace {

using test::expect_error;
using testing::ElementsAre;

static_assert(archivable<tensor> && !trivially_transportable<tensor> && transportable<std::vector<tensor>>);

struct sender final : attachment_sink {
  explicit sender(domain& where) : from(where) {}
  std::uint64_t attach(const shared_block& what) override { return from.blocks().send(what); }
  domain& from;
};

struct receiver final : attachment_source {
  explicit receiver(domain& where) : to(where) {}
  shared_block take(std::uint64_t name) override { return to.blocks().receive(name); }
  domain& to;
};

// Gives the same block whatever its name.
struct forger final : attachment_source {
  explicit forger(shared_block given) : block(std::move(given)) {}
  shared_block take(std::uint64_t /*name*/) override { return block; }
  shared_block block;
};

// Two participants in this process: each has an arena of its own over the same files. The one that was entered last is
// where tensors are made and received.
class TensorArchive : public testing::Test {
protected:
  TensorArchive() {
    const auto id = host_->participants().enrol();
    domain_files files{.control = duplicate(host_->files().control), .arena = duplicate(host_->files().arena)};
    guest_ = std::make_shared<domain>(std::move(files), id);
    domain::enter(host_);
  }
  ~TensorArchive() override { domain::enter(nullptr); }

  static unique_fd duplicate(const unique_fd& file) { return unique_fd(::dup(file.get())); }

  using aligned_bytes = std::vector<std::byte>;
  // A vector's bytes begin aligned to 16.
  aligned_bytes encode(const tensor& what) {
    aligned_bytes bytes(codec<tensor>::size_with(what).bytes);
    sender out(*host_);
    codec<tensor>::encode_with(bytes, &out, what);
    return bytes;
  }
  tensor decode(std::span<const std::byte> bytes) {
    domain::enter(guest_);
    receiver in(*guest_);
    return std::get<0>(codec<tensor>::decode(bytes, &in));
  }
  tensor sent(const tensor& what) { return decode(encode(what)); }

  void expect_all_free() {
    const auto cached =
        host_->blocks().read_statistics().cached_bytes + guest_->blocks().read_statistics().cached_bytes;
    EXPECT_EQ(host_->blocks().read_statistics().held_bytes, cached);
  }

  std::shared_ptr<domain> host_ = std::make_shared<domain>(
      domain_options{.arena_bytes = std::size_t{64} << 20U, .max_participants = 8, .max_blocks = 64});
  std::shared_ptr<domain> guest_;
};

tensor counted(const tensor_shape& shape, memory where = memory::shared) {
  return tensor::arange<std::int32_t>(0, 24, 1, where).reshape(shape);
}

TEST_F(TensorArchive, ATensorInSharedMemoryArrivesAsTheSameMemory) {
  const auto made = counted({4, 6});
  const auto arrived = sent(made);
  EXPECT_TRUE(equal(arrived, made));
  EXPECT_TRUE(arrived.is_shared());
  arrived.fill(7);
  EXPECT_EQ(made.at<std::int32_t>(3, 5), 7);
  made.fill(8);
  EXPECT_EQ(arrived.at<std::int32_t>(0, 0), 8);
}

TEST_F(TensorArchive, WhereOnlyHandlesAreToGoAlongATensorInSharedMemoryIsCopied) {
  const auto made = counted({4, 6});
  const auto part = made.slice(1, 3, 1);
  sender handles(*host_);
  const auto write = [&](frame_writer& out) {
    const frame_writer::copying content(out);
    EXPECT_TRUE(out.attaches());
    EXPECT_FALSE(out.refers());
    part.write_to(out);
  };
  frame_writer counter(true);
  write(counter);
  EXPECT_TRUE(counter.refers());
  EXPECT_EQ(counter.attached(), 0U);
  aligned_bytes bytes(counter.written());
  frame_writer out(bytes, &handles);
  write(out);
  const auto arrived = decode(bytes);
  EXPECT_TRUE(equal(arrived, part));
  made.fill(7);
  EXPECT_EQ(arrived.at<std::int32_t>(0, 0), 1);
}

TEST_F(TensorArchive, WhatArrivedOutlivesWhatWasSentAndAllMemoryIsFreeAfterwards) {
  auto made = counted({4, 6});
  auto arrived = sent(made.slice(1, 2));
  made = tensor();
  EXPECT_THAT(arrived.to_vector<std::int32_t>(), ElementsAre(6, 7, 8, 9, 10, 11));
  arrived = tensor();
  expect_all_free();
}

TEST_F(TensorArchive, WhatArrivedKeepsTheDomain) {
  auto arrived = sent(counted({4, 6}));
  const std::weak_ptr<domain> kept = guest_;
  guest_.reset();
  EXPECT_FALSE(kept.expired());
  EXPECT_EQ(arrived.at<std::int32_t>(3, 5), 23);
  arrived = tensor();
  EXPECT_TRUE(kept.expired());
}

TEST_F(TensorArchive, ATensorOfUpToTwoDimensionsTakesFewBytes) {
  EXPECT_EQ(codec<tensor>::size_with(counted({4, 6})).bytes, 20U);
  EXPECT_EQ(codec<tensor>::size_with(counted({24})).bytes, 16U);
  EXPECT_EQ(codec<tensor>::size_with(counted({4, 6}).slice(1, 2)).bytes, 24U);
  EXPECT_EQ(codec<tensor>::size_with(counted({4, 6})).attachments, 1U);
}

TEST_F(TensorArchive, StridesAndOffsetArrive) {
  const auto part = counted({2, 3, 4}).slice(1, 3, 1).slice(1, 3, 2);
  const auto arrived = sent(part);
  EXPECT_EQ(arrived.strides(), part.strides());
  EXPECT_TRUE(equal(arrived, part));
}

TEST_F(TensorArchive, EveryDtypeArrives) {
  for (std::size_t number = 0; number < dtype_count; ++number) {
    const auto made = tensor::zeros(static_cast<dtype>(number), {5});
    made.fill(1);
    EXPECT_TRUE(equal(sent(made), made)) << made;
    domain::enter(host_);
  }
}

TEST_F(TensorArchive, SizesThatNeedEightBytesArrive) {
  const auto block = host_->blocks().allocate_shared(64);
  const std::size_t huge = std::size_t{5} << 32U;
  const auto standing = tensor::over(storage::over(block), dtype::u8, {huge, 2}, {0, 1}, 3);
  const auto bytes = encode(standing);
  EXPECT_EQ(bytes.size(), 4U + 8 + 8 + 16 + 16);
  EXPECT_EQ(decode(bytes).shape(), (tensor_shape{huge, 2}));
}

TEST_F(TensorArchive, ATensorInLocalMemoryArrivesAsACopyInSharedMemory) {
  const auto made = counted({4, 6}, memory::local);
  const auto part = made.slice(1, 3, 1);
  EXPECT_EQ(codec<tensor>::size_with(part).attachments, 0U);
  const auto arrived = sent(part);
  EXPECT_TRUE(arrived.is_shared());
  EXPECT_TRUE(arrived.is_contiguous());
  EXPECT_TRUE(equal(arrived, part));
  arrived.fill(0);
  EXPECT_EQ(made.at<std::int32_t>(0, 1), 1);
}

TEST_F(TensorArchive, OneOfOneElementAndOneOfNoneArrive) {
  EXPECT_EQ(sent(tensor::full({}, 2.5)).item<double>(), 2.5);
  domain::enter(host_);
  const auto none = counted({4, 6}).slice(2, 2);
  EXPECT_EQ(codec<tensor>::size_with(none).attachments, 0U);
  EXPECT_EQ(sent(none).shape(), (tensor_shape{0, 6}));
  domain::enter(host_);
  EXPECT_TRUE(equal(sent(tensor()), tensor()));
}

TEST_F(TensorArchive, ABlockThatHasRoomForMoreIsFine) {
  const auto made = counted({24});
  const auto arrived = sent(made);
  EXPECT_GT(arrived.storage()->bytes().size(), made.storage()->bytes().size());
  EXPECT_EQ(arrived.nbytes(), made.nbytes());
}

TEST_F(TensorArchive, ATensorArrivesInsideOtherValues) {
  using both = codec<std::vector<tensor>, int>;
  const std::vector<tensor> made = {counted({24}), counted({4, 6}, memory::local)};
  std::vector<std::byte> bytes(both::size_with(made, 5).bytes);
  sender out(*host_);
  both::encode_with(bytes, &out, made, 5);
  domain::enter(guest_);
  receiver in(*guest_);
  const auto [arrived, five] = both::decode(bytes, &in);
  EXPECT_TRUE(equal(arrived.at(0), made[0]));
  EXPECT_TRUE(equal(arrived.at(1), made[1]));
  EXPECT_EQ(five, 5);
}

TEST_F(TensorArchive, WhereNoBlockCanGoTheElementsAreCopied) {
  const auto made = counted({24});
  std::vector<std::byte> bytes(codec<tensor>::size(made));
  codec<tensor>::encode(bytes, made);
  const auto arrived = std::get<0>(codec<tensor>::decode(bytes));
  EXPECT_NE(arrived.data(), made.data());
  EXPECT_TRUE(equal(arrived, made));
}

// What follows is forged: 4 bytes of header (dtype, dimensions, flags, 0), 8 of name, and numbers.
class ForgedTensor : public TensorArchive {
protected:
  template <class Number>
  static aligned_bytes forged(std::array<std::uint8_t, 4> header, const std::vector<Number>& numbers) {
    aligned_bytes bytes(12);
    std::memcpy(bytes.data(), header.data(), 4);
    const auto body = std::as_bytes(std::span(numbers));
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
  }
  tensor load(const aligned_bytes& bytes) {
    forger source(block_);
    return std::get<0>(codec<tensor>::decode(bytes, &source));
  }
  template <class... Parts>
  void expect_corrupted(const aligned_bytes& bytes, const Parts&... parts) {
    expect_error(errc::corrupted, [&] { static_cast<void>(load(bytes)); }, parts...);
  }
  using narrow = std::vector<std::uint32_t>;
  using broad = std::vector<std::uint64_t>;

  shared_block block_ = host_->blocks().allocate_shared(1024);
};

constexpr std::uint8_t f32_code = 11;

TEST_F(ForgedTensor, AHeaderOutOfRangeIsRefused) {
  EXPECT_EQ(load(forged({f32_code, 1, 1, 0}, narrow{256})).nbytes(), 1024U);
  expect_corrupted(forged({15, 1, 1, 0}, narrow{1}), "dtype is 15");
  expect_corrupted(forged({f32_code, 9, 1, 0}, narrow(9, 1)), "9 of at most 8");
  expect_corrupted(forged({f32_code, 1, 33, 0}, narrow{1}), "flags are 33");
  expect_corrupted(forged({f32_code, 1, 16, 0}, narrow{1}), "flags are 16");
  EXPECT_TRUE(load(forged({f32_code, 1, 17, 0}, narrow{256})).is_read_only());
  expect_corrupted(forged({f32_code, 1, 1, 2}, narrow{1}), "kind of device is 2");
  expect_corrupted(forged({f32_code, 1, 0, 1}, narrow{1}), "kind of device is 1");
  expect_corrupted(forged({f32_code, 1, 2, 0}, narrow{1}), "flags are 2");
  expect_corrupted(forged({f32_code, 1, 4, 0}, narrow{1}), "flags are 4");
}

TEST_F(ForgedTensor, ElementsOutsideOfTheBlockAreRefused) {
  expect_corrupted(forged({f32_code, 1, 1, 0}, narrow{257}), "(257,)", "1024 bytes");
  expect_corrupted(forged({f32_code, 1, 5, 0}, narrow{4, 256}), "byte 4", "1024 bytes");
  expect_corrupted(forged({f32_code, 1, 5, 0}, narrow{2, 1}), "multiples of 4");
  expect_corrupted(forged({f32_code, 1, 13, 0}, broad{UINT64_MAX, 1}), "1024 bytes");
  expect_corrupted(forged({f32_code, 1, 3, 0}, narrow{2, 256}), "strides (256,)");
  expect_corrupted(forged({f32_code, 1, 3, 0}, narrow{2, UINT32_MAX}), "strides (-1,)");
  expect_corrupted(forged({f32_code, 1, 11, 0}, broad{3, std::uint64_t{1} << 63U}), "1024 bytes");
}

TEST_F(ForgedTensor, ShapesBeyondAllAddressesAreRefused) {
  expect_corrupted(forged({f32_code, 2, 9, 0}, broad{std::uint64_t{1} << 32U, std::uint64_t{1} << 32U}), "no memory");
  expect_corrupted(forged({f32_code, 1, 9, 0}, broad{UINT64_MAX}), "no memory");
  expect_corrupted(forged({f32_code, 2, 9, 0}, broad{0, UINT64_MAX}), "no memory");
}

TEST_F(ForgedTensor, ACopyThatIsNotThereAllocatesNothing) {
  const auto bytes = forged({f32_code, 1, 8, 0}, broad{});  // the shape lies where a name would
  auto huge = bytes;
  const std::uint64_t size = std::uint64_t{1} << 40U;
  std::memcpy(huge.data() + 4, &size, sizeof size);
  expect_error(errc::not_serializable, [&] { static_cast<void>(load(huge)); }, "bytes");
}

TEST_F(ForgedTensor, WhateverTheBytesAreATensorLiesWithinItsBlock) {
  std::mt19937 random(1);  // NOLINT: the same every time
  const std::array<std::uint32_t, 8> likely = {0, 1, 2, 16, 255, 256, 1U << 31U, UINT32_MAX};
  std::size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    narrow numbers(random() % 12);
    for (auto& each : numbers) each = likely[random() % likely.size()];
    const auto bytes = forged({static_cast<std::uint8_t>(random() % 16), static_cast<std::uint8_t>(random() % 4),
                               static_cast<std::uint8_t>(random() % 16 | 1U), 0},
                              numbers);
    try {
      const auto made = load(bytes);
      if (made.size() > 4096) continue;  // one that stands still
      made.fill(1);                      // what lies outside, the sanitizers see
      EXPECT_GE(made.data(), block_.data());
      EXPECT_LE(made.data(), block_.data() + block_.size());
      ++accepted;
    } catch (const error& refused) {
      EXPECT_TRUE(refused.code() == errc::corrupted || refused.code() == errc::not_serializable) << refused.what();
    }
  }
  EXPECT_GT(accepted, 100U);
}

}  // namespace
}  // namespace muster::tensor_archive_test
