// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/outbox.hpp>

#include <new>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::uint64_t outbox_magic = 0x6d75737447620004;  // "mustGb", layout version 4

}  // namespace

outbox outbox::make(std::span<std::byte> bytes) noexcept {
  auto* const made = new (bytes.data()) memory{};
  made->magic = outbox_magic;
  return outbox(made);
}

outbox outbox::attach(std::span<std::byte> bytes) {
  auto* const found = reinterpret_cast<memory*>(bytes.data());
  if (bytes.size() >= sizeof(memory) && found->magic == outbox_magic) return outbox(found);
  throw error(errc::corrupted, text("a block of ", bytes.size(),
                                    " bytes was named as a rank's outbox, but is none: "
                                    "has somebody overwritten it?"));
}

}  // namespace muster::detail
