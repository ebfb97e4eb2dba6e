// SPDX-License-Identifier: BSL-1.0
#pragma once

// Values under keys that many processes share, each with a version.
//
//     muster::store_ticket ticket({.depth = 1});              // the program; goes to others as an argument
//     muster::store store(ticket);                            // any process
//     auto [ok, version] = store.push("w", weights);
//     auto [w, at] = store.pull<muster::tensor>("w");         // no message, no copy
//     auto newer = store.pull_if_newer<muster::tensor>("w", at);
//     store.update<int>("steps", [](int steps) { return steps + 1; });

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/params/detail/store_access.hpp>
#include <muster/params/store_key.hpp>
#include <muster/params/store_ticket.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster {

class store;

namespace detail {

/// Waits until `done`, which is asked again whenever one of some keys, that one among them, has another version, a
/// process has died, or wake_waiters() was called. False when `until` passed first.
bool wait_for_change(const store& of, const store_key& key, const std::function<bool()>& done, deadline until);
/// All that wait look again.
void wake_waiters(const store& of);

/// For what stands on stores.
struct store_parts;

}  // namespace detail

/// A value of a store, with its version.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
template <class T>
struct pulled {
  T value;                    ///< as it was pushed
  std::uint64_t version = 0;  ///< from 1 on, of its key
};

/// How a value is pushed.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct push_options {
  /// Which version has to be the newest, or the push is refused; 0: the key has no value. Without: any may be.
  std::optional<std::uint64_t> expected{};
};

/// One of several values that are pushed together: `store.push_all({{"w", w}, {"b", b, 7}})`.
///
/// Thread safety: as the value. Lifetime: borrows the value.
class keyed_value {
public:
  /// Stands for a value and its key; `expected`: as push_options.
  template <class T>
  keyed_value(store_key key, const T& value, std::optional<std::uint64_t> expected = {})
      : key_(std::move(key)), expected_(expected), value_(&value), encode_(&encode<T>) {
    detail::require_transportable<sent_as<T>>();
  }

private:
  friend class store;
  template <class T>
  static detail::new_version encode(const detail::store_ptr& to, const store_key& key, const void* value) {
    return detail::version_of<sent_as<T>>(to, key, *static_cast<const T*>(value));
  }

  store_key key_;
  std::optional<std::uint64_t> expected_;
  const void* value_;
  detail::new_version (*encode_)(const detail::store_ptr&, const store_key&, const void*);
};

/// Values under keys, for any number of processes. Each push makes a version, whose number is higher than that of
/// the one before, and which does not change any more; a pull finds the newest, without a message to anybody, and, of a
/// tensor, without a copy. Versions go on after erase().
///
/// Values are what can be sent (docs/what-can-be-sent.md), by copy: tensors inside of others too. Each is pulled as the
/// type that it was pushed as. Errors: errc::invalid_argument for a key of more than store_key::most_bytes and for
/// another type; errc::out_of_memory where there is no room, or as many keys as store_options::most_keys.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: any process may be killed, or stopped, at any instruction: a version is whole or not there, and no
/// other process's push or pull waits for it. One that is stopped right behind its push may not have woken those that
/// wait for that version (wait_for): they sleep until it goes on, another push, or their time. In a forked child calls
/// throw errc::forked.
/// Visibility: what was written before a push is visible after a pull of that version.
/// Lifetime: as long as one process has it, or a ticket. Of each key a process keeps the version in a block that it has
/// looked at last (pull, version, keys, wait_for, a push), until it looks at that key again.
/// Cost: a pull two looks at shared memory, the first of a version a few hundred nanoseconds; a push a copy, and a
/// compare-and-swap. A value of up to 256 bytes lies beside its key if depth is 1, others in blocks of 64 KiB.
class store {
public:
  /// Opens it. Throws errc::invalid_argument for an empty ticket.
  explicit store(const store_ticket& ticket);
  store(const store&) = default;                 ///< The same store.
  store& operator=(const store&) = default;      ///< The same.
  store(store&&) noexcept = default;             ///< Takes it over.
  store& operator=(store&&) noexcept = default;  ///< The same.
  ~store() = default;

  /// Makes a new version of a value, which is copied. Returns whether it has become the newest, and that one's version.
  template <class T>
  push_result push(const store_key& key, const T& value, const push_options& how = {}) const {
    using sent = sent_as<T>;
    detail::require_transportable<sent>();
    return detail::push_value<sent>(core_, key, value, how.expected);
  }

  /// The same, of a tensor that is given away: it becomes the version itself, without a copy, and `value` is tensor()
  /// then, if there is no other handle of it, here or in another process, and it is all that its block has, but for 128
  /// bytes at the end (64 KiB in all, or a multiple): empty_like() makes such ones. Otherwise, and of bools, and where
  /// it would lie beside its key (256 bytes), it is copied, and stays as it was. What still points to its elements is
  /// not to write to them.
  push_result push(const store_key& key, tensor&& value, const push_options& how = {}) const;
  /// Returns a tensor of that dtype and shape, in shared memory, for what is to be pushed without a copy. Elements are
  /// undefined. Throws errc::out_of_memory.
  [[nodiscard]] tensor empty_like(const tensor& other) const;

  /// Makes new versions of several values at one moment, or of none: where one is not the version that is expected, and
  /// also where this process is killed on the way; one that is stopped there goes on anew. Throws
  /// errc::invalid_argument for a key that is given twice; errc::timed_out after store_options::timeout, where others
  /// push one of them all the time. Cost: each takes a block, short ones too; where others push one of the keys
  /// meanwhile it is tried again.
  push_all_result push_all(const std::vector<keyed_value>& values) const {
    std::vector<detail::new_version> made;
    std::vector<std::optional<std::uint64_t>> expected;
    for (const auto& each : values) {
      made.push_back(each.encode_(core_, each.key_, each.value_));
      expected.push_back(each.expected_);
    }
    return detail::new_version::publish_all(core_, made, expected);
  }

  /// Returns the newest version. A tensor is the version itself, and read-only (tensor::is_read_only), here and where
  /// it is sent to: read it by `span<const float>()`, or clone() it. Throws errc::invalid_argument where there is none.
  template <class T>
  [[nodiscard]] pulled<T> pull(const store_key& key) const {
    auto found = try_pull<T>(key);
    if (!found) detail::throw_missing(key);
    return *std::move(found);
  }
  /// Returns the newest version, or nothing where there is none.
  template <class T>
  [[nodiscard]] std::optional<pulled<T>> try_pull(const store_key& key) const {
    return read<T>(key, detail::find_version(core_, key, std::nullopt));
  }
  /// Returns that version, or nothing where it is not there any more (store_options::depth), or not yet.
  template <class T>
  [[nodiscard]] std::optional<pulled<T>> try_pull(const store_key& key, std::uint64_t version) const {
    return read<T>(key, detail::find_version(core_, key, version));
  }
  /// Returns the newest version if that is higher than `version`, else nothing.
  template <class T>
  [[nodiscard]] std::optional<pulled<T>> pull_if_newer(const store_key& key, std::uint64_t version) const {
    if (this->version(key) <= version) return std::nullopt;
    return try_pull<T>(key);
  }
  /// Returns values of several keys as they all were at one moment. Throws errc::invalid_argument where one is not
  /// there; errc::timed_out when others have pushed all the time, for as long as store_options::timeout.
  template <class T>
  [[nodiscard]] std::vector<pulled<T>> pull_all(const std::vector<store_key>& keys) const {
    const auto found = detail::find_all(core_, keys);
    std::vector<pulled<T>> all;
    for (std::size_t each = 0; each < keys.size(); ++each) {
      all.push_back({.value = detail::value_of_version<T>(keys[each], found[each]), .version = found[each].version});
    }
    return all;
  }

  /// Replaces a value by `f(value)`, which does not change it (a tensor: clone() it), again and again until no other
  /// has changed it meanwhile; what `f` throws is thrown, and changes nothing. Returns the version that it made. Throws
  /// as pull; errc::timed_out after store_options::timeout.
  template <class T, class F>
  std::uint64_t update(const store_key& key, F f) const {
    const auto until = detail::end_of_wait(core_, {});
    for (;;) {
      const auto now = pull<T>(key);
      const auto made = push(key, static_cast<T>(f(std::as_const(now.value))), {.expected = now.version});
      if (made.ok) return made.version;
      if (until.expired()) detail::throw_too_busy(key);
    }
  }

  /// Waits until a value has at least that version; false when the time passed first. 0: store_options::timeout.
  /// Unblocked by: a push.
  [[nodiscard]] bool wait_for(const store_key& key, std::uint64_t version, std::chrono::nanoseconds timeout = {}) const;
  /// Returns the newest version's number; 0 where there is no value.
  [[nodiscard]] std::uint64_t version(const store_key& key) const;
  /// Returns whether there is a value.
  [[nodiscard]] bool contains(const store_key& key) const { return version(key) != 0; }
  /// Returns the keys that have values, sorted. Cost: looks at all places for keys.
  [[nodiscard]] std::vector<store_key> keys() const;
  /// Lets a value go, with all its versions; false where there is none.
  bool erase(const store_key& key) const;

  /// Writes all values, as they were at one moment, with their versions, in the format safetensors
  /// (write_safetensors()): tensors under their keys, others as bytes, which the same build of the program reads. Keys
  /// that begin with the byte 1 are the library's and are left out. Throws as write_safetensors(), and as pull_all.
  void save(const std::string& path) const;
  /// Replaces the values that a file has, all at one moment; others stay. Each gets the version that it had, or the
  /// next one where that is not higher. Of a file that another library has written, tensors become values under their
  /// names; of a file of a key-value store (kv_store::save), what its rule remembers is passed over. Throws as
  /// read_safetensors(), errc::out_of_memory, and errc::timed_out as push_all; then nothing has changed. Cost: each
  /// value takes a block of 64 KiB at least, short ones too.
  void load(const std::string& path) const;

private:
  friend struct detail::store_parts;
  friend bool detail::wait_for_change(const store& of, const store_key& key, const std::function<bool()>& done,
                                      deadline until);
  friend void detail::wake_waiters(const store& of);
  template <class T>
  [[nodiscard]] static std::optional<pulled<T>> read(const store_key& key,
                                                     const std::optional<detail::found_version>& found) {
    if (!found) return std::nullopt;
    return pulled<T>{.value = detail::value_of_version<T>(key, *found), .version = found->version};
  }

  detail::store_ptr core_;
};

}  // namespace muster
