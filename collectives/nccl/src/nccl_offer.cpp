// SPDX-License-Identifier: BSL-1.0
#include "nccl_offer.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

// FNV-1a; 0 where there is nothing.
std::uint64_t hash_of_variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return 0;
  std::uint64_t mixed = 0xcbf2'9ce4'8422'2325U;
  for (const char each : std::string_view(value)) {
    mixed = (mixed ^ static_cast<unsigned char>(each)) * 0x100'0000'01b3U;
  }
  return mixed;
}

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && std::string_view(value) == "1";
}

// Since 2.30; until then only with host identities of their own, which a process has one of.
constexpr int sharing_version = 23000;

bool may_share(const nccl_offer& a, const nccl_offer& b) {
  if (a.version >= sharing_version && a.shares_device != 0 && b.shares_device != 0) return true;
  return a.pid != b.pid && a.host != b.host && a.host != 0 && b.host != 0;
}

void require_same_version(const std::vector<nccl_offer>& all) {
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].version == all[0].version) continue;
    throw error(errc::invalid_argument,
                text("rank 0 has NCCL ", nccl_library::version_text(all[0].version), " and rank ", rank, " has ",
                     nccl_library::version_text(all[rank].version), ": they must have the same"));
  }
}

void require_own_devices(const std::vector<nccl_offer>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t before = 0; before < rank; ++before) {
      if (all[rank].device != all[before].device || may_share(all[before], all[rank])) continue;
      throw error(errc::invalid_argument,
                  text("ranks ", before, " and ", rank, " are on one device, which NCCL refuses: give each its own"));
    }
  }
}

}  // namespace

nccl_offer nccl_offer::of(const nccl_library& library, const cuda_device& where, std::size_t rank) {
  nccl_offer made{.version = library.version_number(),
                  .pid = ::getpid(),
                  .device = where.uuid(),
                  .host = hash_of_variable("NCCL_HOSTID"),
                  .shares_device = is_set("NCCL_MULTI_RANK_GPU_ENABLE") ? 1U : 0U,
                  .has_id = rank == 0 ? 1U : 0U};
  if (rank == 0) library.unique_id(&made.id);
  return made;
}

static_assert(std::is_trivially_copyable_v<nccl_offer> && sizeof(nccl_offer) <= device_transport::most_offered);

std::vector<std::byte> nccl_offer::pack() const {
  std::vector<std::byte> bytes(sizeof *this);
  std::memcpy(bytes.data(), this, sizeof *this);
  return bytes;
}

std::optional<nccl_offer> nccl_offer::unpack(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(nccl_offer)) return std::nullopt;
  nccl_offer found;
  std::memcpy(&found, bytes.data(), sizeof found);
  return found;
}

std::vector<nccl_offer> unpack_all(std::span<const std::vector<std::byte>> offers) {
  std::vector<nccl_offer> all;
  for (const auto& each : offers) {
    const auto found = nccl_offer::unpack(each);
    if (!found) {
      throw error(errc::invalid_argument, text("rank ", all.size(),
                                               " offers another transport: its program is "
                                               "linked with another build of muster::nccl"));
    }
    all.push_back(*found);
  }
  if (all.empty() || all.front().has_id == 0) throw error(errc::invalid_argument, "rank 0 gave no id to join by");
  require_same_version(all);
  require_own_devices(all);
  return all;
}

}  // namespace muster::detail
