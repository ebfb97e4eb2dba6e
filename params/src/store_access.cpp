// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/store_access.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <muster/base/detail/demangle.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/detail/store_core.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

std::span<const std::byte> found_version::frame() const noexcept {
  if (!block) return std::span<const std::byte>(copied).first(bytes);
  return {block.data(), bytes};
}

// ---- what is pushed

/// A short value is encoded here, another where it will lie.
///
/// Thread safety: belongs to its thread.
struct new_version::parts {
  store_ptr store;
  std::size_t line = 0;
  std::uint64_t type = 0;
  std::size_t bytes = 0;
  std::uint64_t least = 0;
  snapshot made;  // none: it is short
  alignas(64) std::array<std::byte, short_room::most_bytes> room;
};

new_version::new_version(store_ptr store, const store_key& key, const type_mark& type, std::size_t bytes, bool is_alone)
    : parts_(std::make_unique<parts>()) {
  parts_->line = store->require_line(key);
  parts_->type = type.fingerprint;
  parts_->bytes = bytes;
  if (!is_alone || !store->is_short(bytes)) parts_->made = store->make_block(type.fingerprint, bytes);
  parts_->store = std::move(store);
}

new_version::new_version(new_version&& other) noexcept = default;
new_version::~new_version() = default;

std::span<std::byte> new_version::room() noexcept {
  return parts_->made ? parts_->made.value() : std::span(parts_->room).first(parts_->bytes);
}

void new_version::set_least(std::uint64_t version) noexcept { parts_->least = version; }

push_result new_version::publish(std::optional<std::uint64_t> expected) {
  auto& self = *parts_;
  if (self.made) return self.store->push_block(self.line, self.made, expected);
  return self.store->push_short(self.line, self.type, room(), expected);
}

namespace {

[[noreturn]] void throw_twice(const store_key& key) {
  throw error(errc::invalid_argument, text("the key ", key, " was given twice to push_all: give each key once"));
}

tensor over_elements(const snapshot& which, std::shared_ptr<const storage> bytes) {
  const auto& head = which.head();
  const auto sizes = std::span(head.sizes).first(std::min<std::size_t>(head.dimensions, head.sizes.size()));
  tensor_shape shape;
  for (const auto each : sizes) shape.push_back(static_cast<std::size_t>(each));
  return tensor::over(std::move(bytes), static_cast<dtype>(head.dtype), shape);
}

void set_form(const snapshot& made, const tensor& of) {
  auto& head = made.head();
  head.is_tensor = 1;
  head.dtype = static_cast<std::uint32_t>(of.dtype());
  head.dimensions = of.dimensions();
  std::copy(of.shape().begin(), of.shape().end(), head.sizes.begin());
}

// Whether it can be a version where it lies: this is the only handle, and behind it there is room for the head. Bools
// may be of any bytes, which copies are not.
bool can_be_given(const store_core& store, const tensor& value) {
  const auto& where = value.storage();
  if (where == nullptr || where->on_device() != nullptr || where->block().owner() != &store.memory()) return false;
  const auto& block = where->block();
  const bool is_whole = value.is_contiguous() && !value.is_read_only() && value.dtype() != dtype::boolean &&
                        value.const_data() == block.data();
  return is_whole && value.nbytes() <= snapshot::place_of_head(store.memory().capacity_of(block)) &&
         where.use_count() == 1 && store.memory().is_sole(block);
}

}  // namespace

new_version new_version::like(store_ptr store, const store_key& key, const tensor& other) {
  new_version made(std::move(store), key, mark_of<tensor>(), other.nbytes(), false);
  set_form(made.parts_->made, other);
  return made;
}

tensor new_version::elements() const { return over_elements(parts_->made, storage::over(parts_->made.block())); }

new_version::new_version(store_ptr store, const store_key& key, const tensor& value)
    : new_version(like(std::move(store), key, value)) {
  if (value.size() != 0) elements().copy_from(value);
}

push_result push_tensor(const store_ptr& store, const store_key& key, const tensor& value,
                        std::optional<std::uint64_t> expected) {
  const auto encoded = codec<tensor>::size(value);
  if (!store->is_short(encoded)) return new_version(store, key, value).publish(expected);
  new_version made(store, key, mark_of<tensor>(), encoded);
  codec<tensor>::encode(made.room(), value);
  return made.publish(expected);
}

tensor empty_like(const store_ptr& store, const tensor& other) {
  if (other.nbytes() == 0) return tensor::empty(other.dtype(), other.shape());
  return tensor::over(storage::over(store->make_room(other.nbytes())), other.dtype(), other.shape());
}

// The head lies where nothing of the tensor does: a push that is refused has changed nothing.
push_result push_given(const store_ptr& store, const store_key& key, tensor& value,
                       std::optional<std::uint64_t> expected) {
  const auto line = store->require_line(key);
  if (store->is_short(codec<tensor>::size(value)) || !can_be_given(*store, value)) {
    return push_tensor(store, key, value, expected);
  }
  const auto made = store->make_snapshot(value.storage()->block(), mark_of<tensor>().fingerprint, value.nbytes());
  set_form(made, value);
  const auto found = store->push_block(line, made, expected);
  if (found) value = tensor();
  return found;
}

// In the order of their lines, as all processes have it; the answer in that in which they were given.
push_all_result new_version::publish_all(const store_ptr& store, std::span<new_version> all,
                                         std::span<const std::optional<std::uint64_t>> expected) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return all[a].parts_->line < all[b].parts_->line; });
  std::vector<store_core::part> parts;
  for (const auto each : order) {
    const auto& one = *all[each].parts_;
    if (!parts.empty() && parts.back().line == one.line) throw_twice(store->table().key_of(one.line));
    parts.push_back({.line = one.line, .made = one.made, .expected = expected[each], .least = one.least});
  }
  const auto found = store->push_all(parts);
  push_all_result sorted{.ok = found.ok, .versions = std::vector<std::uint64_t>(all.size())};
  for (std::size_t each = 0; each < order.size(); ++each) sorted.versions[order[each]] = found.versions[each];
  return sorted;
}

// ---- what is found

void read_tensor(const found_version& found, tensor& to) {
  to = found.is_tensor ? over_elements(snapshot(found.block, found.capacity), storage::read_only(found.block))
                       : codec<tensor>::decode_value(found.frame()).as_read_only();
}

std::optional<found_version> find_version(const store_ptr& store, const store_key& key,
                                          std::optional<std::uint64_t> version) {
  return store->find(key, version);
}

namespace {

// As all were at one moment: they are still so when the last has been read. Nothing where one was replaced meanwhile.
std::optional<std::vector<found_version>> try_find_all(store_core& store, std::span<const store_key> keys) {
  std::vector<std::pair<std::size_t, newest_version>> now;
  for (const auto& key : keys) {
    const auto line = store.find_line(key);
    if (!line) throw_missing(key);
    now.emplace_back(*line, store.look(*line));
    if (now.back().second.version() == 0) throw_missing(key);
  }
  std::vector<found_version> all;
  for (const auto& [line, each] : now) {
    auto found = store.read(line, each, std::nullopt);
    if (!found) return std::nullopt;
    all.push_back(*std::move(found));
  }
  const bool are_so =
      std::all_of(now.begin(), now.end(), [&](const auto& each) { return store.is_still(each.first, each.second); });
  if (!are_so) return std::nullopt;
  return all;
}

}  // namespace

std::vector<found_version> find_all(const store_ptr& store, std::span<const store_key> keys) {
  const auto until = store->end_of_wait({});
  for (;;) {
    if (auto found = try_find_all(*store, keys)) return *std::move(found);
    if (until.expired()) throw_too_busy(keys.front());
  }
}

void require_type(const store_key& key, const found_version& found, const type_mark& asked) {
  if (found.type == asked.fingerprint) return;
  throw error(errc::invalid_argument, text("the value ", key, " of a store was pushed as another type than ",
                                           demangle(asked.name), ": pull it as the type that it was pushed as"));
}

void throw_missing(const store_key& key) {
  throw error(errc::invalid_argument, text("there is no value ", key,
                                           " in the store: push it first, wait for it "
                                           "(wait_for), or use try_pull"));
}

void throw_too_busy(const store_key& key) {
  throw task_error(error_info(errc::timed_out, text("others have pushed ", key,
                                                    " and what belongs to it all the time, "
                                                    "for as long as store_options::timeout")));
}

deadline end_of_wait(const store_ptr& store, std::chrono::nanoseconds given) { return store->end_of_wait(given); }

}  // namespace muster::detail
