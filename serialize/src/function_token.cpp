// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/function_token.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

constexpr unsigned module_shift = 48;
constexpr unsigned check_shift = 32;
constexpr std::uint64_t most_offset = UINT32_MAX;

// Depends on every bit of both: the upper half of a product with 2^64 divided by the golden ratio.
constexpr std::uint64_t check_of(std::uint64_t module, std::uint64_t offset) {
  return (module << check_shift | offset) * 0x9e3779b97f4a7c15U >> 48U;
}

function_token make_token(std::uint64_t module, std::uint64_t offset) {
  return static_cast<function_token>(module << module_shift | check_of(module, offset) << check_shift | offset);
}

[[noreturn]] void refuse(const std::string& reason, std::span<const module_info> modules) {
  throw error(errc::module_mismatch, text("a function cannot be named for the workers: ", reason,
                                          "; the modules of this process are\n", describe(modules)));
}

void write_entry(module_entry& entry, const std::string& build_id) {
  std::memcpy(entry.build_id.data(), build_id.data(), build_id.size());
  entry.length.store(static_cast<std::uint32_t>(build_id.size()), std::memory_order_release);
}

// Two modules with one build-id are different code under one name, or the same code twice; neither can be told from
// the other by a receiver.
void check_identity(const module_info& module, std::span<const module_info> modules) {
  const auto name = module.path.empty() ? std::string("the executable") : module.path;
  if (module.build_id.empty()) refuse(name + " has no build-id: link it with -Wl,--build-id=sha1", modules);
  if (module.build_id.size() > module_entry::most_bytes) refuse(name + " has a build-id of over 60 bytes", modules);
  const auto same = std::count_if(modules.begin(), modules.end(),
                                  [&](const module_info& each) { return each.build_id == module.build_id; });
  if (same > 1) refuse(name + " has the build-id of another module: link it with -Wl,--build-id=sha1", modules);
}

// Empty when the entry is not complete.
std::string build_id_of(const module_entry& entry) {
  const auto found = entry.length.load(std::memory_order_acquire);
  if (found == module_entry::claimed) return {};
  return {entry.build_id.data(), std::min<std::size_t>(found, module_entry::most_bytes)};
}

std::string too_many() { return text("more than ", module_directory_size, " modules define tasks"); }

}  // namespace

token_encoder::token_encoder(module_directory directory) : directory_(directory) { enter_executable(); }

token_encoder::token_encoder(module_directory directory, shared /*tag*/) : directory_(directory), way_(way::shares) {
  enter_executable();
}

void token_encoder::enter_executable() {
  const auto modules = loaded_modules();
  if (modules.empty()) refuse("the loader shows no modules", modules);
  enter_module_of(modules.front().code_begin);  // where one encoder enters all, the executable is module 0
}

function_token token_encoder::encode_address(std::uintptr_t address) {
  const auto count = count_.load(std::memory_order_acquire);
  for (std::size_t index = 0; index < count; ++index) {
    const auto& module = known_[index];
    if (address >= module.code_begin && address < module.code_end) {
      return make_token(module.entry, address - module.base);
    }
  }
  return enter_module_of(address);
}

// Without the lock it is looked up and kept: a static object of a library that another thread is loading may name a
// function, and waits for the lock while the loader waits for it.
function_token token_encoder::enter_module_of(std::uintptr_t address) {
  const auto modules = loaded_modules();
  const auto found =
      std::find_if(modules.begin(), modules.end(), [&](const module_info& each) { return each.contains(address); });
  if (found == modules.end()) refuse("its code lies in no loaded module", modules);
  check_identity(*found, modules);
  if (found->code_end - found->base > most_offset) refuse("its module is larger than 4 GiB", modules);
  if (!keep_loaded(*found)) refuse(found->path + " is being unloaded", modules);
  const scoped_lock lock(mutex_);
  const auto count = count_.load(std::memory_order_relaxed);
  for (std::size_t earlier = 0; earlier < count; ++earlier) {  // another thread may have entered it meanwhile
    const auto& known = known_[earlier];
    if (known.code_begin == found->code_begin) return make_token(known.entry, address - found->base);
  }
  if (count == known_.size()) refuse(too_many(), modules);
  const auto entry = way_ == way::enters   ? enter(*found)
                     : way_ == way::shares ? claim_entry(*found, modules)
                                           : find_entry(*found, modules);
  known_[count] = {.base = found->base, .code_begin = found->code_begin, .code_end = found->code_end, .entry = entry};
  count_.store(count + 1, std::memory_order_release);
  return make_token(entry, address - found->base);
}

// Requires: there is room.
std::size_t token_encoder::enter(const module_info& module) {
  const auto index = count_.load(std::memory_order_relaxed);
  build_ids_.push_back(module.build_id);
  write_entry(directory_[index], module.build_id);
  return index;
}

// Two that enter the same module at once may each get an entry: both mean the same.
std::size_t token_encoder::claim_entry(const module_info& module, std::span<const module_info> modules) const {
  for (std::size_t index = 0; index < directory_.size(); ++index) {
    auto& entry = directory_[index];
    if (build_id_of(entry) == module.build_id) return index;
    std::uint32_t none = 0;
    if (!entry.length.compare_exchange_strong(none, module_entry::claimed, std::memory_order_acq_rel)) {
      if (build_id_of(entry) == module.build_id) return index;
      continue;
    }
    write_entry(entry, module.build_id);
    return index;
  }
  refuse(too_many(), modules);
}

std::size_t token_encoder::find_entry(const module_info& module, std::span<const module_info> modules) const {
  for (std::size_t index = 0; index < directory_.size(); ++index) {
    if (build_id_of(directory_[index]) == module.build_id) return index;
  }
  refuse(text(module.path,
              " has not defined a task of the program itself yet: a task can only call functions of the executable "
              "and of libraries of which the program has called one before"),
         modules);
}

bool token_encoder::restore_directory() {
  const scoped_lock lock(mutex_);
  bool was_wrong = false;
  for (std::size_t index = 0; index < build_ids_.size(); ++index) {
    auto& entry = directory_[index];
    const auto& right = build_ids_[index];
    const bool intact = entry.length.load(std::memory_order_relaxed) == right.size() &&
                        std::memcmp(entry.build_id.data(), right.data(), right.size()) == 0;
    if (!intact) write_entry(entry, right);
    was_wrong |= !intact;
  }
  return was_wrong;
}

std::uintptr_t token_decoder::decode_address(function_token token) {
  const auto value = static_cast<std::uint64_t>(token);
  const auto index = static_cast<std::size_t>(value >> module_shift);
  const auto offset = value & most_offset;
  if (index >= directory_.size() || (value >> check_shift & 0xffffU) != check_of(index, offset)) {
    throw error(errc::corrupted, text("function token ", value, " was overwritten"));
  }
  const auto& known = resolved_[index];
  const auto& module = known.known.load(std::memory_order_acquire) ? known : resolve(index);
  const auto address = module.base + offset;
  if (address < module.code_begin || address >= module.code_end) {
    throw error(errc::corrupted, text("function token ", value, " does not lie in the code of module ", index));
  }
  return address;
}

// Without the lock, as above.
const token_decoder::resolved_module& token_decoder::resolve(std::size_t index) {
  const auto found = find_module(index);
  const scoped_lock lock(mutex_);
  auto& entry = resolved_[index];
  if (entry.known.load(std::memory_order_relaxed)) return entry;
  entry.base = found.base;
  entry.code_begin = found.code_begin;
  entry.code_end = found.code_end;
  entry.known.store(true, std::memory_order_release);
  return entry;
}

// Which stays loaded.
module_info token_decoder::find_module(std::size_t index) const {
  const auto wanted = build_id_of(directory_[index]);
  auto modules = loaded_modules();
  const auto found = std::find_if(modules.begin(), modules.end(),
                                  [&](const module_info& each) { return !wanted.empty() && each.build_id == wanted; });
  if (found == modules.end() || !keep_loaded(*found)) {
    throw error(
        errc::module_mismatch,
        text("the worker has not loaded the library that defines this function: link it to the program, or load "
             "it in the pool's initializer; the worker's modules are\n",
             describe(modules)));
  }
  return std::move(*found);
}

}  // namespace muster
