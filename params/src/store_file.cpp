// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/store_file.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/params/detail/store_core.hpp>
#include <muster/params/store.hpp>
#include <muster/serialize/exceptions.hpp>

#include "kv_names.hpp"

namespace muster::detail {

namespace {

constexpr std::string_view origin_name = "muster";  // in the metadata of what a store has written
constexpr std::string_view origin = "store 1";

[[noreturn]] void refuse_entry(const std::string& path, const std::string& name, const std::string& why) {
  throw error(errc::corrupted, text("the file ", path, " is no whole file of a store: its tensor '", name, "': ", why));
}

using metadata_by_name = std::map<std::string, std::string>;

store_file_entry entry_of(const metadata_by_name& all, const std::string& name, bool is_ours, const std::string& path) {
  if (!is_ours && name.size() > store_key::most_bytes) refuse_entry(path, name, "its name is too long for a key");
  if (!is_ours) return {.key = store_key(name)};
  const auto line = all.find("value " + name);
  const auto found = line != all.end() ? store_file_entry::parse(name, line->second) : std::nullopt;
  if (found) return *found;
  refuse_entry(path, name, line != all.end() ? "'" + line->second + "' is said of it" : "nothing is said of it");
}

bool is_tensor(const found_version& found) { return found.type == mark_of<tensor>().fingerprint; }

tensor bytes_of(const found_version& found) {
  const auto frame = found.frame();
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size());
  return tensor::from(bytes, {bytes.size()}, memory::local);
}

}  // namespace

store_file::store_file(const std::string& path) {
  auto all = read_safetensors(path, memory::local);
  const metadata_by_name metadata(all.metadata.begin(), all.metadata.end());
  const auto origin_found = metadata.find(std::string(origin_name));
  const bool is_ours = origin_found != metadata.end() && origin_found->second == origin;
  std::set<std::pair<store_key, std::optional<std::uint64_t>>> keys;
  for (auto& [name, value] : all.tensors) {
    auto what = entry_of(metadata, name, is_ours, path);
    if (what.key.text().starts_with(own_byte)) refuse_entry(path, name, "its key is one of the library's own");
    if (!keys.emplace(what.key, what.state).second) refuse_entry(path, name, "its key is there twice");
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
  if (entry.type && value.nbytes() != 0) std::memcpy(made.room().data(), value.const_data(), value.nbytes());
  made.set_least(entry.version);
  return made;
}

void require_room_for(const store_ptr& store, const std::vector<store_key>& keys) {
  const auto added = static_cast<std::size_t>(
      std::count_if(keys.begin(), keys.end(), [&](const auto& each) { return !store->find_line(each); }));
  const auto left = store->table().keys_left();
  if (added <= left) return;
  throw error(errc::out_of_memory, text(added, " keys were to be added to a store that has room for ", left,
                                        " more, of ", store->table().shape().keys, " (store_options::most_keys)"));
}

namespace {

// Also of keys that have no value: one may come. Nothing where something was changed, or a key added, meanwhile.
std::optional<std::vector<stored_version>> try_find_everything(store_core& store) {
  std::vector<std::pair<std::size_t, newest_version>> now;
  store.table().for_each([&](std::size_t line) { now.emplace_back(line, store.look(line)); });
  std::vector<stored_version> all;
  for (const auto& [line, each] : now) {
    if (each.version() == 0) continue;
    auto found = store.read(line, each, std::nullopt);
    if (!found) return std::nullopt;
    all.push_back({.key = store.table().key_of(line), .found = *std::move(found)});
  }
  std::size_t keys = 0;
  store.table().for_each([&](std::size_t /*line*/) { ++keys; });
  const bool are_so =
      std::all_of(now.begin(), now.end(), [&](const auto& each) { return store.is_still(each.first, each.second); });
  if (!are_so || keys != now.size()) return std::nullopt;
  return all;
}

}  // namespace

std::vector<stored_version> find_everything(const store_ptr& store) {
  store->require_here();
  for (const auto until = store->end_of_wait({});;) {
    if (auto found = try_find_everything(*store)) {
      std::sort(found->begin(), found->end(), [](const auto& a, const auto& b) { return a.key < b.key; });
      return *std::move(found);
    }
    if (!until.expired()) continue;
    throw task_error(error_info(errc::timed_out,
                                "a store was to be saved, and others have pushed to it all the time, for as long as "
                                "store_options::timeout"));
  }
}

}  // namespace muster::detail

namespace muster {

// What it looks at it keeps no longer than this takes.
void store::save(const std::string& path) const {
  detail::store_file file;
  for (const auto& [key, found] : detail::find_everything(core_->open_again())) {
    if (!key.text().starts_with(detail::own_byte)) file.add({.key = key}, found);
  }
  file.write(path);
}

void store::load(const std::string& path) const {
  const detail::store_file file(path);
  const auto core = core_->open_again();
  std::vector<store_key> keys;
  for (const auto& [entry, value] : file.entries()) {
    if (!entry.state) keys.push_back(entry.key);
  }
  if (keys.empty()) return;
  detail::require_room_for(core, keys);
  std::vector<detail::new_version> made;
  for (const auto& each : file.entries()) {
    if (!each.first.state) made.push_back(detail::version_of_entry(core, each));
  }
  const std::vector<std::optional<std::uint64_t>> whichever(made.size());
  static_cast<void>(detail::new_version::publish_all(core, made, whichever));
}

}  // namespace muster
