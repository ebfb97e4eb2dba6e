// SPDX-License-Identifier: BSL-1.0
#pragma once

// Values with versions that their pushers choose: Machin's OrderedServer, without a server.
//
//     muster::ordered_server values(box, "models", {.depth = 2});   // box: a store_ticket, which the program makes
//     bool first = values.push("w", w, 1, std::nullopt);
//     bool next = values.push("w", w, 2, 1);                        // 1 was the newest one
//     auto newest = values.pull<tensor>("w");                       // optional: value, version

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/params/state_dict.hpp>
#include <muster/params/store.hpp>
#include <muster/params/store_ticket.hpp>
#include <muster/params/versioned_store.hpp>

namespace muster {

/// How an ordered_server is made.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct ordered_options {
  std::size_t depth = 1;  ///< how many versions of each key are kept; the first that names the server decides
};

namespace detail {

/// Which versions of a key there are, and where.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct ordered_index {
  struct entry {
    std::int64_t version = 0;
    std::uint64_t place = 0;

    template <class Archive>
    void serialize(Archive& archive) {
      archive(version, place);
    }
  };
  std::vector<entry> kept;  // the newest first

  template <class Archive>
  void serialize(Archive& archive) {
    archive(kept);
  }

  /// Whether a push that expects `previous` may go on.
  [[nodiscard]] bool fits(std::optional<std::int64_t> previous) const;
  /// A place that none of them has.
  [[nodiscard]] std::uint64_t free_place() const;
  /// What it becomes, and the places that are free by that.
  [[nodiscard]] std::pair<ordered_index, std::vector<std::uint64_t>> with(entry added, std::size_t depth) const;
  [[nodiscard]] const entry* find(std::optional<std::int64_t> version) const;
};

}  // namespace detail

/// Values under keys, each with the versions that their pushers have given them: any whole numbers, which need not
/// grow. A push says which version it was made from, and is refused where that is not the newest one any more. There is
/// no process that serves: it is a face of a store.
///
/// Errors: errc::invalid_argument for another type than was pushed, and a depth that is not the first one's; as store.
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: as store: a push that was killed has happened, or not at all.
/// Cost: a push takes blocks of 64 KiB for the value, its index, and each version that goes.
class ordered_server final : public versioned_store {
public:
  /// Opens it, under that name: those with the same name in the same store are one.
  ordered_server(const store_ticket& box, std::string name, const ordered_options& how = {});

  /// Keeps a copy of the value as that version, if `previous` is the version of the newest one; of a key that has no
  /// value, in any case. `version` == `previous` replaces the newest one; a version that an older one has replaces
  /// that. Returns whether it did.
  template <class T>
  bool push(const std::string& key, const T& value, std::int64_t version, std::optional<std::int64_t> previous) const {
    for (;;) {
      const auto index = store_.try_pull<detail::ordered_index>(index_key(key));
      const auto& now = index ? index->value : detail::ordered_index();
      if (!now.fits(previous)) return false;
      const auto place = now.free_place();
      const auto [next, freed] = now.with({.version = version, .place = place}, depth_);
      std::vector<keyed_value> all{{place_key(key, place), value}, {index_key(key), next, index ? index->version : 0}};
      for (const auto each : freed) all.emplace_back(place_key(key, each), nothing);
      if (store_.push_all(all)) return true;
    }
  }
  bool push(const std::string& key, const state_dict& value, std::int64_t version,
            std::optional<std::int64_t> previous) override {
    return push<state_dict>(key, value, version, previous);
  }

  /// Returns the newest value, or that version of it; nothing where it is not there.
  template <class T>
  [[nodiscard]] std::optional<ordered_value<T>> pull(const std::string& key,
                                                     std::optional<std::int64_t> version = {}) const {
    for (;;) {
      const auto index = store_.try_pull<detail::ordered_index>(index_key(key));
      const auto* const which = index ? index->value.find(version) : nullptr;
      if (which == nullptr) return std::nullopt;
      auto found = try_place<T>(place_key(key, which->place), index_key(key), index->version);
      if (found) return ordered_value<T>{.value = *std::move(found), .version = which->version};
    }
  }
  [[nodiscard]] std::optional<ordered_value<state_dict>> pull(const std::string& key) override {
    return pull<state_dict>(key);
  }

private:
  static constexpr bool nothing = false;  // where a version was that has gone

  [[nodiscard]] store_key index_key(const std::string& key) const;
  [[nodiscard]] store_key place_key(const std::string& key, std::uint64_t place) const;
  /// Nothing when the index is another one by now.
  template <class T>
  [[nodiscard]] std::optional<T> try_place(const store_key& place, const store_key& index,
                                           std::uint64_t version) const {
    try {
      auto found = store_.try_pull<T>(place);
      if (store_.version(index) != version) return std::nullopt;
      if (found) return std::move(found->value);
    } catch (const error&) {
      if (store_.version(index) == version) throw;
      return std::nullopt;
    }
    throw_lost(place);
  }
  [[noreturn]] static void throw_lost(const store_key& place);

  store store_;
  std::string name_;
  std::size_t depth_;
};

}  // namespace muster
