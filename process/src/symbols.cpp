// SPDX-License-Identifier: BSL-1.0
#include "symbols.hpp"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include <muster/base/unique_fd.hpp>

namespace muster::detail {

namespace {

using elf_header = ElfW(Ehdr);
using elf_section = ElfW(Shdr);
using elf_symbol = ElfW(Sym);

// Read, not mapped: a file that becomes shorter meanwhile would be a SIGBUS.
class elf_file {
public:
  explicit elf_file(const std::string& name) : file_(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat what{};
    if (file_ && ::fstat(file_.get(), &what) == 0 && S_ISREG(what.st_mode)) {
      size_ = static_cast<std::uint64_t>(what.st_size);
    }
  }

  /// `count` objects that lie at `offset`; none when they do not all.
  template <class T>
  [[nodiscard]] std::vector<T> read(std::uint64_t offset, std::uint64_t count) const {
    constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20U;
    if (offset > size_ || count > most_bytes / sizeof(T) || count * sizeof(T) > size_ - offset) return {};
    std::vector<T> found(count);
    auto* const room = reinterpret_cast<char*>(found.data());  // NOLINT: plain data as bytes
    const auto bytes = count * sizeof(T);
    for (std::uint64_t done = 0; done < bytes;) {
      const auto length = ::pread(file_.get(), room + done, bytes - done, static_cast<off_t>(offset + done));
      if (length <= 0) return {};
      done += static_cast<std::uint64_t>(length);
    }
    return found;
  }

  /// Its table of all symbols, or of those that are exported.
  [[nodiscard]] std::vector<elf_section> sections() const {
    const auto header = read<elf_header>(0, 1);
    if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
        header[0].e_shentsize != sizeof(elf_section)) {
      return {};
    }
    return read<elf_section>(header[0].e_shoff, header[0].e_shnum);
  }

private:
  unique_fd file_;
  std::uint64_t size_ = 0;
};

std::optional<elf_section> table_of_symbols(const std::vector<elf_section>& sections) {
  for (const auto type : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (const auto& each : sections) {
      if (each.sh_type == static_cast<unsigned>(type) && each.sh_link < sections.size()) return each;
    }
  }
  return std::nullopt;
}

bool is_function(const elf_symbol& symbol) {
  return (symbol.st_info & 0xfU) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;  // the low half is the type
}

}  // namespace

std::vector<std::string> find_symbols(const std::string& file, const std::vector<std::uint64_t>& addresses) {
  std::vector<std::string> names(addresses.size());
  const elf_file module(file);
  const auto sections = module.sections();
  const auto table = table_of_symbols(sections);
  if (!table) return names;
  const auto symbols = module.read<elf_symbol>(table->sh_offset, table->sh_size / sizeof(elf_symbol));
  const auto& strings_section = sections[table->sh_link];
  const auto strings = module.read<char>(strings_section.sh_offset, strings_section.sh_size);
  for (const auto& symbol : symbols) {
    if (!is_function(symbol) || symbol.st_name >= strings.size()) continue;
    for (std::size_t index = 0; index < addresses.size(); ++index) {
      if (addresses[index] - symbol.st_value >= symbol.st_size || !names[index].empty()) continue;  // also if below
      const char* const begin = strings.data() + symbol.st_name;
      names[index].assign(begin, ::strnlen(begin, strings.size() - symbol.st_name));
    }
  }
  return names;
}

}  // namespace muster::detail
