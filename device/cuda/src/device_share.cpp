// SPDX-License-Identifier: BSL-1.0
#include "device_share.hpp"

#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/serialize/detail/frame_stream.hpp>

#include "cuda_devices.hpp"

namespace muster::detail {

namespace {

// Whoever has sent it may have exported it only just now, and is answered by the domain's host.
constexpr std::chrono::seconds patience{30};

[[noreturn]] void throw_corrupted(const std::string& why) {
  throw error(errc::corrupted,
              text("a reference to a device's memory cannot be one: ", why, "; whoever sent it misbehaves"));
}

// Read once: others can write there.
device_tag read_tag(const shared_block& block) {
  device_tag found;
  if (block.size() < sizeof found) throw_corrupted(text("its tag has ", block.size(), " bytes"));
  std::memcpy(static_cast<void*>(&found), block.data(), sizeof found);
  if (found.magic != device_tag::expected_magic) throw_corrupted("its tag is none");
  if (found.means != sharing_means::descriptor && found.means != sharing_means::handle) {
    throw_corrupted(text("it is shared by means ", static_cast<std::uint64_t>(found.means)));
  }
  if (found.offset % device_heap::piece_alignment != 0 || found.offset > found.extent_bytes ||
      found.bytes > found.extent_bytes - found.offset) {
    throw_corrupted(
        text(found.bytes, " bytes from ", found.offset, " on were to lie in an extent of ", found.extent_bytes));
  }
  return found;
}

}  // namespace

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

bool exported_extent::is_open_elsewhere() const {
  return memory_->means() == sharing_means::handle && !anchor().owner()->is_sole(anchor());
}

shared_block exported_extent::tag_of(const cuda_device& device, const device_piece& piece, std::size_t bytes) const {
  auto made = domain_->blocks().allocate_shared(sizeof(device_tag));
  new (made.data()) device_tag{.extent = name_.bits(),
                               .extent_bytes = memory_->size(),
                               .offset = piece.offset,
                               .bytes = bytes,
                               .uuid = device.uuid(),
                               .index = device.where().index(),
                               .means = memory_->means(),
                               .owner = static_cast<std::uint64_t>(::getpid())};
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
  device.promise(anchor());
  return count;
}

// ---- what came from others

imported_extent::imported_extent(std::shared_ptr<cuda_device> device, const device_tag& tag, const shared_block& anchor)
    : device_(std::move(device)), domain_(domain::of(anchor)), name_(tag.extent) {
  const device_promise what{
      .owner = static_cast<pid_t>(tag.owner), .where = device_->where(), .bytes = tag.extent_bytes};
  const auto descriptor = domain_->descriptors().fetch(name_, deadline::after(patience));
  if (!descriptor) {
    throw error(errc::peer_lost, text("memory of ", device_->where(), " that process ", tag.owner,
                                      " has sent is not there any more: that process has died, or is not part of this "
                                      "domain"));
  }
  const auto require_owner = [&] {
    if (tag.means == sharing_means::handle && !is_owner_alive()) throw_gone(what, "that process has ended");
  };
  require_owner();
  anchor_.emplace(device_->driver(), anchor);
  try {
    memory_.emplace(device_->driver(), device_->handle(), tag.extent_bytes, tag.means, *descriptor);
  } catch (const error& failure) {
    require_owner();
    if (failure.code() == errc::peer_lost) throw_gone(what, failure.what());
    throw;
  }
}

// The device may still be at work on it.
imported_extent::~imported_extent() {
  const auto result = device_->driver().stream_synchronize.attempt(device_->compute().handle());
  static_cast<void>(result);
  memory_.reset();
  anchor_.reset();
  domain_->descriptors().let_go(name_);
}

// That is known before what the dead one had is given to others.
bool imported_extent::is_owner_alive() const noexcept {
  constexpr unsigned pid_bits = 32;
  const auto found = domain_->occupant(name_.depositor());
  return found != 0 && name_.is_of(static_cast<std::uint32_t>(found >> pid_bits));
}

void imported_extent::require(const device_promise& what) const {
  if (never_comes(anchor_->content(), what.count)) {
    device_->forget_awaited(anchor_->block(), what.count);
    throw_lost(anchor_->content(), what);
  }
  if (memory_->means() == sharing_means::handle && !is_owner_alive()) throw_gone(what, "that process has ended");
}

void imported_extent::await(const device_promise& what) const {
  require(what);
  if (is_there(anchor_->content(), what.count)) return;
  device_->driver().stream_wait_value(device_->compute().handle(), anchor_->reached(), what.count,
                                      CU_STREAM_WAIT_VALUE_GEQ);
  device_->note_awaited(anchor_->block(), what);
}

std::shared_ptr<const received_block> received_block::read_from(frame_reader& in) {
  auto tag = in.take_attachment();
  auto anchor = in.take_attachment();
  std::uint64_t count = 0;
  in.read(&count, sizeof count);
  if (count >= device_anchor::broken_count) throw_corrupted(text("its count is ", count));
  const auto found = read_tag(tag);
  if (anchor.size() < sizeof(device_anchor)) throw_corrupted(text("its anchor has ", anchor.size(), " bytes"));
  return std::make_shared<const received_block>(found, std::move(tag), std::move(anchor), count, in.is_lent_for_task());
}

received_block::received_block(const device_tag& tag, shared_block tag_block, shared_block anchor, std::uint64_t count,
                               bool is_lent)
    : tag_(tag),
      domain_(domain::of(tag_block)),
      tag_block_(std::move(tag_block)),
      anchor_(std::move(anchor)),
      count_(count),
      is_lent_(is_lent),
      kept_(is_lent ? cuda_devices::of_program().kept_mapping(tag.extent) : nullptr) {}

// In a forked child it is its parent's, and a thread that the child does not have may have the lock.
received_block::~received_block() {
  if (!made_in_.is_here()) return;
  const scoped_lock lock(mutex_);
  if (!opened_) return;
  auto last = std::move(opened_->last);
  last->tag = std::move(tag_block_);
  last->anchor = std::move(anchor_);
  opened_->device->let_go_later(std::move(last), is_lent_);
}

// By what identifies it everywhere; as its owner calls it where this process does not see it, or has no driver.
device received_block::where() const noexcept {
  return cuda_devices::of_program().find(tag_.uuid).value_or(device::cuda(static_cast<std::uint16_t>(tag_.index)));
}

device_promise received_block::promise_of(device where) const {
  return {.count = count_, .owner = static_cast<pid_t>(tag_.owner), .where = where, .bytes = tag_.bytes};
}

// Whoever asks is going to give the device work on memory that is another's.
const received_block::opening& received_block::opened() const {
  made_in_.require_here("memory of a device");
  cuda_devices::note_pending();
  const scoped_lock lock(mutex_);
  if (!opened_) {
    opened_ = open();
  } else if (opened_->imported != nullptr) {
    opened_->imported->require(promise_of(opened_->device->where()));
  }
  return *opened_;
}

bool received_block::is_open() const {
  const scoped_lock lock(mutex_);
  return opened_.has_value();
}

received_block::opening received_block::open() const {
  auto device = cuda_devices::of_program().open_one(tag_.uuid);
  const cuda_device::scope current(*device);
  auto last = std::make_unique<left_blocks>();
  last->keeper = domain::of(tag_block_);
  const auto require_inside = [&](std::size_t bytes) {
    if (tag_.extent_bytes != bytes) throw_corrupted(text("its extent has ", bytes, " bytes, not ", tag_.extent_bytes));
  };
  if (const auto own = device->exported(tag_.extent)) {
    require_inside(own->size());
    return {device, own, own.get(), nullptr, own->address() + tag_.offset, std::move(last)};
  }
  const auto extent = device->import(tag_, anchor_);
  require_inside(extent->size());
  extent->await(promise_of(device->where()));
  if (is_lent_) device->keep_mapped(extent);
  return {device, extent, &extent->memory(), extent.get(), extent->address() + tag_.offset, std::move(last)};
}

void received_block::open_to(const cuda_device& peer) const {
  const auto& found = opened();
  found.memory->open_to(peer.handle(), found.device->context());
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
