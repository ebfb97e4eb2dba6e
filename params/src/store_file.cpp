// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/store_file.hpp>

#include <algorithm>
#include <cstring>
#include <set>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/params/detail/store_core.hpp>
#include <muster/params/store.hpp>

#include "kv_names.hpp"
#include "store_parts.hpp"

namespace muster::detail {

namespace {

constexpr std::string_view origin_name = "muster";  // in the metadata of what a store has written
constexpr std::string_view origin = "store 1";

[[noreturn]] void refuse_entry(const std::string& path, const std::string& name, const std::string& why) {
  throw error(errc::corrupted, text("the file ", path, " is no whole file of a store: its tensor '", name, "': ", why));
}

store_file_entry entry_of(const safetensors& all, const std::string& name, bool is_ours, const std::string& path) {
  if (!is_ours) return {.key = store_key(name)};
  const auto line = std::find_if(all.metadata.begin(), all.metadata.end(),
                                 [&](const auto& each) { return each.first == "value " + name; });
  const auto found = line != all.metadata.end() ? store_file_entry::parse(name, line->second) : std::nullopt;
  if (found) return *found;
  refuse_entry(path, name,
               line != all.metadata.end() ? "'" + line->second + "' is said of it" : "nothing is said of it");
}

bool is_tensor(const found_version& found) { return found.type == mark_of<tensor>().fingerprint; }

tensor bytes_of(const found_version& found) {
  const auto frame = found.frame();
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size());
  return tensor::from(bytes, {bytes.size()}, memory::local);
}

}  // namespace

store_file::store_file(const std::string& path) {
  auto all = read_safetensors(path);
  const bool is_ours = std::any_of(all.metadata.begin(), all.metadata.end(),
                                   [](const auto& each) { return each.first == origin_name && each.second == origin; });
  for (auto& [name, value] : all.tensors) {
    auto what = entry_of(all, name, is_ours, path);
    if (what.key.text().starts_with(own_byte)) refuse_entry(path, name, "its key is one of the library's own");
    entries_.emplace_back(std::move(what), std::move(value));
  }
}

void store_file::add(store_file_entry what, const found_version& found) {
  what.version = found.version;
  tensor value;
  if (is_tensor(found)) {
    read_tensor(found, value);
  } else {
    what.type = found.type;
    value = bytes_of(found);
  }
  entries_.emplace_back(std::move(what), std::move(value));
}

// Where two would have one name, as 3 and "3", one gets a longer one.
void store_file::write(const std::string& path) const {
  safetensors all{.tensors = {}, .metadata = {{std::string(origin_name), std::string(origin)}}};
  std::set<std::string> taken{"__metadata__"};
  for (const auto& [what, value] : entries_) {
    auto name = what.name();
    while (!taken.insert(name).second) name += '\'';
    all.metadata.emplace_back("value " + name, what.fields(name));
    all.tensors.emplace_back(std::move(name), value);
  }
  write_safetensors(path, all);
}

new_version version_of_entry(const store_ptr& store, const store_file::entry& what) {
  const auto& [entry, value] = what;
  auto made = entry.type
                  ? new_version(store, entry.key, {.name = "", .fingerprint = *entry.type}, value.nbytes(), false)
                  : new_version(store, entry.key, value);
  if (entry.type) std::memcpy(made.room().data(), value.const_data(), value.nbytes());
  made.set_least(entry.version);
  return made;
}

std::vector<store_key> keys_of_program(const store& of) {
  auto all = of.keys();
  std::erase_if(all, [](const auto& each) { return each.text().starts_with(own_byte); });
  return all;
}

std::pair<std::vector<store_key>, std::vector<found_version>> find_all_listed(
    const store_ptr& store, const std::function<std::vector<store_key>()>& list) {
  for (const auto until = store->end_of_wait({});;) {
    auto keys = list();
    if (auto found = find_all_there(store, keys, until)) return {std::move(keys), *std::move(found)};
    if (until.expired()) throw_too_busy(keys.front());
  }
}

}  // namespace muster::detail

namespace muster {

void store::save(const std::string& path) const {
  const auto [keys, found] = detail::find_all_listed(core_, [this] { return detail::keys_of_program(*this); });
  detail::store_file file;
  for (std::size_t each = 0; each < keys.size(); ++each) file.add({.key = keys[each]}, found[each]);
  file.write(path);
}

// States of a key-value store's rules are values here.
void store::load(const std::string& path) const {
  const detail::store_file file(path);
  if (file.entries().empty()) return;
  std::vector<detail::new_version> made;
  for (const auto& each : file.entries()) {
    if (!each.first.state) made.push_back(detail::version_of_entry(core_, each));
  }
  const std::vector<std::optional<std::uint64_t>> whichever(made.size());
  static_cast<void>(detail::new_version::publish_all(core_, made, whichever));
}

}  // namespace muster
