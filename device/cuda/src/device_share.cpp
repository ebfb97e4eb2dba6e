// SPDX-License-Identifier: BSL-1.0
#include "device_share.hpp"

#include <cstring>
#include <new>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/pending_work.hpp>
#include <muster/serialize/frame_stream.hpp>

#include "cuda_devices.hpp"

namespace muster::detail {

namespace {

constexpr std::size_t page_bytes = 4096;

// Whoever has sent it may have exported it only just now, and is answered by the domain's host.
constexpr std::chrono::seconds patience{30};

// A program that has joined another's domain keeps that in another way.
std::shared_ptr<domain> domain_of(const shared_block& block) {
  auto found = domain::of(block);
  return found != nullptr ? found : domain::entered();
}

shared_block new_anchor() {
  auto made = domain::of_program()->blocks().allocate_shared(page_bytes);
  new (made.data()) device_anchor{};
  return made;
}

[[noreturn]] void throw_corrupted(const std::string& why) {
  throw error(errc::corrupted, text("a reference to a device's memory cannot be one: ", why,
                                    "; whoever sent it misbehaves"));
}

// Read once: others can write there.
device_tag read_tag(const shared_block& block) {
  device_tag found;
  if (block.size() < sizeof found) throw_corrupted(text("its tag has ", block.size(), " bytes"));
  std::memcpy(static_cast<void*>(&found), block.data(), sizeof found);
  if (found.magic != device_tag::expected_magic) throw_corrupted("its tag is none");
  if (found.offset % device_heap::piece_alignment != 0 || found.offset > found.extent_bytes || found.bytes > found.extent_bytes - found.offset) {
    throw_corrupted(text(found.bytes, " bytes from ", found.offset, " on were to lie in an extent of ",
                         found.extent_bytes));
  }
  return found;
}

}  // namespace

// ---- the page that streams count in

registered_anchor::registered_anchor(const cuda_driver& driver, shared_block block)
    : driver_(driver), domain_(domain_of(block)), block_(std::move(block)) {
  driver.host_register(block_.data(), page_bytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
  if (const auto result = driver.host_device_pointer.attempt(&address_, block_.data(), 0); result != CUDA_SUCCESS) {
    static_cast<void>(driver.host_unregister.attempt(block_.data()));
    driver.host_device_pointer(&address_, block_.data(), 0);
  }
}

registered_anchor::~registered_anchor() { static_cast<void>(driver_.host_unregister.attempt(block_.data())); }

// ---- what others may have

exported_extent::exported_extent(const cuda_device& device, std::shared_ptr<const device_extent> memory)
    : domain_(domain::of_program()),
      memory_(std::move(memory)),
      name_(domain_->descriptors().make_name()),
      anchor_(device.driver(), new_anchor()) {
  domain_->descriptors().deposit(name_, memory_->descriptor(), anchor_.block());
}

exported_extent::~exported_extent() = default;

void exported_extent::withdraw() noexcept { domain_->descriptors().withdraw(name_); }

shared_block exported_extent::tag_of(const cuda_device& device, const device_piece& piece, std::size_t bytes) const {
  auto made = domain_->blocks().allocate_shared(sizeof(device_tag));
  new (made.data()) device_tag{.extent = name_.bits(),
                               .extent_bytes = memory_->size(),
                               .offset = piece.offset,
                               .bytes = bytes,
                               .uuid = device.uuid(),
                               .index = device.where().index()};
  return made;
}

std::uint64_t exported_extent::mark(const cuda_device& device) {
  if (!device.counts_in_memory()) {
    device.compute().synchronize();
    return 0;
  }
  const scoped_lock lock(mutex_);
  const auto count = ++counted_;
  device.driver().stream_write_value(device.compute().handle(), anchor_.reached(), count,
                                     CU_STREAM_WRITE_VALUE_DEFAULT);
  return count;
}

// ---- what came from others

imported_extent::imported_extent(std::shared_ptr<cuda_device> device, const device_tag& tag,
                                 const shared_block& anchor)
    : device_(std::move(device)), domain_(domain_of(anchor)), name_(tag.extent) {
  const auto descriptor = domain_->descriptors().fetch(name_, deadline::after(patience));
  if (!descriptor) {
    throw error(errc::peer_lost, text("memory of ", device_->where(), " that another process has sent is not there any "
                                      "more: that process has died, or is not part of this domain"));
  }
  anchor_.emplace(device_->driver(), anchor);
  memory_.emplace(device_->driver(), device_->handle(), tag.extent_bytes, *descriptor);
}

// The device may still be at work on it.
imported_extent::~imported_extent() {
  const auto result = device_->driver().stream_synchronize.attempt(device_->compute().handle());
  static_cast<void>(result);
  memory_.reset();
  anchor_.reset();
  domain_->descriptors().let_go(name_);
}

void imported_extent::await(std::uint64_t count) const {
  if (count == 0) return;
  const auto reached = anchor_->content().reached.load(std::memory_order_acquire);
  if ((reached & descriptor_exchange::dead_count) != 0 && (reached & ~descriptor_exchange::dead_count) < count) {
    throw error(errc::peer_lost, text("a tensor on ", device_->where(), " was not finished when the process that sent it "
                                      "died: it holds nothing of use"));
  }
  if (reached >= count) return;
  device_->driver().stream_wait_value(device_->compute().handle(), anchor_->reached(), count, CU_STREAM_WAIT_VALUE_GEQ);
}

std::shared_ptr<const received_block> received_block::read_from(frame_reader& in) {
  auto tag = in.take_attachment();
  auto anchor = in.take_attachment();
  std::uint64_t count = 0;
  in.read(&count, sizeof count);
  if (count >= descriptor_exchange::dead_count) throw_corrupted(text("its count is ", count));
  const auto found = read_tag(tag);
  if (anchor.size() < sizeof(device_anchor)) throw_corrupted(text("its anchor has ", anchor.size(), " bytes"));
  return std::make_shared<const received_block>(found, std::move(tag), std::move(anchor), count);
}

received_block::received_block(const device_tag& tag, shared_block tag_block, shared_block anchor, std::uint64_t count)
    : tag_(tag),
      domain_(domain_of(tag_block)),
      tag_block_(std::move(tag_block)),
      anchor_(std::move(anchor)),
      count_(count) {}

received_block::~received_block() {
  const scoped_lock lock(mutex_);
  if (opened_) opened_->device->let_go_later(std::move(tag_block_), std::move(anchor_));
}

// By what identifies it everywhere, once this process has a driver at work; until then as its owner calls it.
device received_block::where() const noexcept {
  return cuda_devices::of_program().find(tag_.uuid).value_or(device::cuda(static_cast<std::uint16_t>(tag_.index)));
}

// Whoever asks is going to give the device work on memory that is another's.
const received_block::opening& received_block::opened() const {
  pending_work::note([] { cuda_devices::of_program().synchronize(); });
  const scoped_lock lock(mutex_);
  if (!opened_) opened_ = open();
  return *opened_;
}

bool received_block::is_open() const {
  const scoped_lock lock(mutex_);
  return opened_.has_value();
}

received_block::opening received_block::open() const {
  auto device = cuda_devices::of_program().open_one(tag_.uuid);
  const cuda_device::scope current(*device);
  const auto require_inside = [&](std::size_t bytes) {
    if (tag_.extent_bytes != bytes) throw_corrupted(text("its extent has ", bytes, " bytes, not ", tag_.extent_bytes));
  };
  if (const auto own = device->exported(tag_.extent)) {
    require_inside(own->size());
    return {device, own, own->address() + tag_.offset};
  }
  const auto extent = device->import(tag_, anchor_);
  require_inside(extent->size());
  extent->await(count_);
  return {device, extent, extent->address() + tag_.offset};
}

// What was done here with it has no count that others could wait for, so it is waited for.
void received_block::write_to(frame_writer& out) const {
  const bool was_opened = is_open();
  if (was_opened && !out.only_counts()) opened().device->synchronize();
  out.attach(tag_block_);
  out.attach(anchor_);
  const auto count = was_opened ? 0 : count_;
  out.write(&count, sizeof count);
}

}  // namespace muster::detail
