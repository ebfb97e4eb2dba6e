// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/shared_object.hpp>

#include <array>
#include <cstring>

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/domain.hpp>
#include <muster/serialize/shared_segment.hpp>

namespace muster::detail {

namespace {

constexpr std::uint64_t magic = 0x6d75'7374'6f62'6a01;  // "mustobj", layout version 1

// The beginning of the block. Layout: docs/formats/shared_object.md.
struct header {
  std::uint64_t magic = 0;
  std::uint64_t type = 0;
  std::uint64_t bytes = 0;   // all of it
  std::uint64_t object = 0;  // where it begins
};

constexpr std::size_t header_bytes = shared_image::alignment;
static_assert(sizeof(header) <= header_bytes);

// How it is encoded; the first byte.
enum class manner : std::uint8_t { none = 0, by_reference = 1, by_copy = 2 };

[[noreturn]] void throw_corrupted(const std::string& why) {
  throw error(errc::corrupted,
              text("what came as a shared object cannot be one: ", why, "; whoever sent it misbehaves"));
}

std::string problem_of(const header& found, const image_type& type, std::size_t block_bytes) {
  if (found.magic != magic || found.type != type.number) {
    return text("its block begins with ", found.magic, " and type ", found.type, " where ", magic, " and type ",
                type.number, " should be");
  }
  const bool fits = found.bytes <= block_bytes && found.object >= header_bytes && type.bytes <= found.bytes &&
                    found.object <= found.bytes - type.bytes && found.object % type.alignment == 0;
  if (fits) return {};
  return text("an object of ", type.bytes, " bytes, aligned to ", type.alignment, ", would lie at byte ", found.object,
              " of ", found.bytes, ", in a block of ", block_bytes);
}

}  // namespace

/// The block goes before what it is a part of.
struct shared_image::held {
  std::shared_ptr<domain> keeper;
  shared_block block;
};

shared_image::shared_image(shared_block block, std::size_t bytes, std::shared_ptr<domain> keeper)
    : bytes_(bytes), stamp_(block.owner()->stamp()) {
  held_ = std::make_shared<const held>(held{.keeper = std::move(keeper), .block = std::move(block)});
}

shared_image::shared_image(std::size_t bytes, std::shared_ptr<domain> where) {
  if (where == nullptr) where = domain::of_program();
  if (bytes > SIZE_MAX - header_bytes) {
    throw error(errc::out_of_memory, text("a shared object of ", bytes, " bytes was asked for: there are fewer"));
  }
  auto block = where->blocks().allocate_shared(header_bytes + bytes);
  *this = shared_image(std::move(block), header_bytes + bytes, std::move(where));
}

std::size_t segment_bytes(std::size_t object_bytes, std::size_t bytes) {
  constexpr std::size_t tables_bytes = 1024;
  if (bytes <= SIZE_MAX - header_bytes - object_bytes - tables_bytes) return bytes + object_bytes + tables_bytes;
  throw error(errc::out_of_memory, text("a shared object with ", bytes,
                                        " bytes for its parts was asked for: there are fewer; say how much "
                                        "they will need, or less, since it is built again where that is too little"));
}

shared_image segment_image(std::size_t room, const std::shared_ptr<domain>& where, const std::exception_ptr& refused) {
  try {
    return {room, where};
  } catch (const error&) {
    if (refused) std::rethrow_exception(refused);
    throw;
  }
}

std::span<std::byte> shared_image::all() const noexcept { return held_->block.bytes().first(bytes_); }

std::span<std::byte> shared_image::room() const noexcept { return all().subspan(header_bytes); }

void shared_image::seal(const image_type& type, const void* object) noexcept {
  const auto offset = static_cast<const std::byte*>(object) - all().data();
  const header made{.magic = magic, .type = type.number, .bytes = bytes_, .object = static_cast<std::uint64_t>(offset)};
  MUSTER_ASSERT(problem_of(made, type, bytes_).empty());
  std::memcpy(all().data(), &made, sizeof made);
  object_ = object;
}

// The header is read once: others can write to it.
void shared_image::find_object(const image_type& type) {
  const auto bytes = held_->block.bytes();
  header found;
  if (bytes.size() < header_bytes) throw_corrupted(text("its block has ", bytes.size(), " bytes"));
  std::memcpy(&found, bytes.data(), sizeof found);
  const auto problem = problem_of(found, type, bytes.size());
  if (!problem.empty()) throw_corrupted(problem);
  bytes_ = found.bytes;
  object_ = bytes.data() + found.object;
}

void shared_image::save(output_archive& archive) const {
  const auto how = object_ == nullptr ? manner::none : archive.attaches() ? manner::by_reference : manner::by_copy;
  archive.write(&how, sizeof how);
  if (how == manner::by_reference) archive.attach(held_->block);
  if (how != manner::by_copy) return;
  const std::uint64_t bytes = bytes_;
  archive.write(&bytes, sizeof bytes);
  archive.write(all().data(), bytes);
}

shared_image shared_image::read_block(shared_block block, const image_type& type) {
  auto keeper = domain::of(block);
  const auto bytes = block.size();
  shared_image found(std::move(block), bytes, std::move(keeper));
  found.find_object(type);
  return found;
}

// The bytes of a copy are there before room for them is made.
shared_image shared_image::load(input_archive& archive, const image_type& type) {
  manner how{};
  archive.read(&how, sizeof how);
  switch (how) {
    case manner::none: return {};
    case manner::by_reference: return read_block(archive.take_attachment(), type);
    case manner::by_copy: break;
    default: throw_corrupted(text("its encoding begins with ", static_cast<int>(how)));
  }
  std::uint64_t bytes = 0;
  archive.read(&bytes, sizeof bytes);
  const auto* const from = archive.take(bytes);
  if (bytes < header_bytes) throw_corrupted(text("its copy has ", bytes, " bytes"));
  shared_image copy(bytes - header_bytes, nullptr);
  std::memcpy(copy.all().data(), from, bytes);
  copy.find_object(type);
  return copy;
}

}  // namespace muster::detail
