// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/object_token.hpp>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "build_id.hpp"

namespace muster {

namespace {

const char* address_in(const dl_find_object& module, std::uintptr_t offset) {
  return reinterpret_cast<const char*>(module.dlfo_link_map->l_addr + offset);  // NOLINT(performance-no-int-to-ptr)
}

// Empty where there is none. The table of segments lies behind the file's header, at the beginning of its first
// segment.
std::string_view build_id_of(const dl_find_object& module) {
  const auto* begin = static_cast<const char*>(module.dlfo_map_start);
  ElfW(Ehdr) header;
  std::memcpy(&header, begin, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  const auto* table = reinterpret_cast<const ElfW(Phdr)*>(begin + header.e_phoff);
  for (const auto& segment : std::span(table, header.e_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    const auto found = detail::build_id_in(address_in(module, segment.p_vaddr), segment.p_memsz);
    if (!found.empty()) return found;
  }
  return {};
}

// FNV-1a: build-ids may be chosen by people, so their first bytes need not be random.
std::uint32_t hash_of(std::string_view bytes) {
  std::uint32_t hash = 0x811c9dc5;
  for (const char each : bytes) hash = (hash ^ static_cast<unsigned char>(each)) * 0x01000193;
  return hash;
}

}  // namespace

// _dl_find_object takes no lock, unlike dl_iterate_phdr: this runs in static objects of libraries that are being
// loaded, and under locks that such objects take.
object_token token_of(const void* address) noexcept {
  dl_find_object module{};
  if (::_dl_find_object(const_cast<void*>(address), &module) != 0) return object_token::none;
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - module.dlfo_link_map->l_addr;
  const auto build_id = build_id_of(module);
  if (build_id.empty() || offset > UINT32_MAX) return object_token::none;
  return static_cast<object_token>(std::uint64_t{hash_of(build_id)} << 32U | offset);
}

// Unnamed namespaces, and classes that are local to a static function, by themselves or as arguments of a template.
bool has_internal_linkage(const std::type_info& type) noexcept {
  const std::string_view name = type.name();
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return has("_GLOBAL__N_") || name.starts_with("ZL") || has("IZL");
}

}  // namespace muster
