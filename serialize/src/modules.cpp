// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/modules.hpp>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iomanip>
#include <string_view>

#include <muster/base/text.hpp>

#include "build_id.hpp"

namespace muster {

namespace detail {

namespace {

constexpr std::size_t round_up_4(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

}  // namespace

std::string_view build_id_in(const char* notes, std::size_t bytes) noexcept {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const auto name_bytes = round_up_4(note.n_namesz);
    const auto description_end = sizeof note + name_bytes + note.n_descsz;
    if (description_end > bytes) break;
    const char* name = notes + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      return {name + name_bytes, note.n_descsz};
    }
    const auto whole = std::min(bytes, round_up_4(description_end));  // the last one may come without padding
    notes += whole;
    bytes -= whole;
  }
  return {};
}

}  // namespace detail

namespace {

void add_segment(module_info& module, const ElfW(Phdr) & segment) {
  const auto begin = module.base + segment.p_vaddr;
  const auto end = begin + segment.p_memsz;
  if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
    module.code_begin = module.code_end == 0 ? begin : std::min(module.code_begin, begin);
    module.code_end = std::max(module.code_end, end);
  } else if (segment.p_type == PT_NOTE && module.build_id.empty()) {
    const auto* const notes =
        reinterpret_cast<const char*>(begin);  // NOLINT(performance-no-int-to-ptr): they lie there
    module.build_id = detail::build_id_in(notes, segment.p_memsz);
  }
}

int add_module(dl_phdr_info* info, std::size_t, void* modules) {
  module_info module;
  module.path = info->dlpi_name;
  module.base = info->dlpi_addr;
  for (int index = 0; index < info->dlpi_phnum; ++index) add_segment(module, info->dlpi_phdr[index]);
  if (module.code_end != 0) static_cast<std::vector<module_info>*>(modules)->push_back(std::move(module));
  return 0;
}

std::string hexadecimal(const std::string& bytes) {
  if (bytes.empty()) return "(no build-id)";
  detail::text_writer out;
  out << std::hex << std::setfill('0');
  for (const char each : bytes) out << std::setw(2) << static_cast<unsigned>(static_cast<unsigned char>(each));
  return std::move(out).str();
}

std::string file_name(const module_info& module) { return std::filesystem::path(module.path).filename().string(); }

std::string compare(const module_info& parent, const module_info& worker) {
  if (parent.build_id.empty()) return text(parent.path.empty() ? "the executable" : parent.path, " has no build-id");
  if (parent.build_id == worker.build_id) return {};
  return text(parent.path.empty() ? "the executable" : file_name(parent), " is another build: the parent has ",
              hexadecimal(parent.build_id), ", the worker ", hexadecimal(worker.build_id));
}

}  // namespace

std::vector<module_info> loaded_modules() {
  std::vector<module_info> modules;
  ::dl_iterate_phdr(add_module, &modules);
  return modules;
}

bool keep_loaded(const module_info& module) noexcept {
  if (module.path.empty()) return true;  // the executable
  return ::dlopen(module.path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}

std::string describe(std::span<const module_info> modules) {
  std::string table;
  for (const auto& module : modules) {
    table += text("  ", hexadecimal(module.build_id), "  ", module.path.empty() ? "(executable)" : module.path, '\n');
  }
  return table;
}

std::string find_mismatch(std::span<const module_info> parent, std::span<const module_info> worker) {
  if (parent.empty() || worker.empty()) return "a process without modules";
  if (auto reason = compare(parent.front(), worker.front()); !reason.empty()) return reason;
  for (const auto& mine : parent.subspan(1)) {
    if (mine.build_id.empty()) continue;  // cannot define tasks anyway: its functions are refused when they are named
    const auto theirs = std::find_if(worker.begin() + 1, worker.end(),
                                     [&](const module_info& each) { return file_name(each) == file_name(mine); });
    if (theirs == worker.end()) continue;
    if (auto reason = compare(mine, *theirs); !reason.empty()) return reason;
  }
  return {};
}

}  // namespace muster
