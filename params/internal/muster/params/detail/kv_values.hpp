// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <muster/device/tensor.hpp>
#include <muster/parallel/rules.hpp>
#include <muster/params/detail/kv_gradient.hpp>
#include <muster/params/detail/kv_placed.hpp>
#include <muster/params/detail/kv_round.hpp>
#include <muster/params/detail/kv_updater.hpp>
#include <muster/params/store.hpp>
#include <muster/params/store_key.hpp>

namespace muster::detail {

/// The rule that is set. Where it replaces one of its kind, with other numbers, what that remembers goes on.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct kv_rule {
  update_rule rule;
  std::uint64_t kind = 1;  ///< higher where it is of another kind than the one before

  [[nodiscard]] bool goes_on_from(const update_rule& before) const noexcept {
    return rule.name() == before.name() && rule.state_count() == before.state_count();
  }
};

/// What an owner reads of the store, and makes there: value, states of the rule and record of a key become the newest
/// at one moment.
///
/// Thread safety: belongs to one thread at a time.
class kv_values {
public:
  /// `placed`: what of them lies on GPUs; null: nothing does.
  explicit kv_values(store all, std::shared_ptr<kv_placed> placed = {})
      : all_(std::move(all)), placed_(std::move(placed)) {}

  [[nodiscard]] std::optional<tensor> find(const store_key& key) const;
  [[nodiscard]] kv_ownership owner(const store_key& key) const;
  [[nodiscard]] pulled<kv_record> record(const store_key& key) const;
  [[nodiscard]] std::uint64_t version(const store_key& key) const { return all_.version(key); }
  /// Whether an updater is to be used, and which.
  [[nodiscard]] pulled<bool> wanted_updater() const;
  /// Publishes a record, where it was of that version. False where another owner has published one meanwhile.
  [[nodiscard]] bool note(const store_key& key, pulled<kv_record>& record) const;
  /// Makes the next value of gradients, which are summed in their order: by the updater, if there is one, else by the
  /// rule that is set, else as their sum; and publishes it with the record, as note(). Returns its version, and `after`
  /// is as it was published; nothing where another owner has published a record meanwhile. Throws what the updater
  /// throws, with nothing changed.
  [[nodiscard]] std::optional<std::uint64_t> apply(const store_key& key, std::span<const kv_gradient> gradients,
                                                   pulled<kv_record>& after, const kv_updater& by) const;

private:
  [[nodiscard]] std::optional<kv_rule> rule() const;
  [[nodiscard]] kv_placed::parts made_of(const kv_placed::parts& now, const store_key& key,
                                         std::span<const kv_gradient> gradients, kv_record& record,
                                         const kv_updater& by) const;
  [[nodiscard]] std::optional<std::uint64_t> apply_there(const store_key& key, kv_placed::parts now,
                                                         std::span<const kv_gradient> gradients,
                                                         pulled<kv_record>& after, const kv_updater& by) const;

  store all_;
  std::shared_ptr<kv_placed> placed_;
};

}  // namespace muster::detail
