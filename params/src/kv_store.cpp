// SPDX-License-Identifier: BSL-1.0
#include <muster/params/kv_store.hpp>

#include <span>

#include <muster/base/error.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/detail/kv_core.hpp>

namespace muster {

std::vector<remote_ref<detail::kv_owner>> detail::owners_of(kv_core& of) { return of.owners(); }
void detail::set_updater_of(kv_owner& owner, kv_updater by) { owner.set_updater(std::move(by)); }
void detail::set_updater_here(kv_core& of, kv_updater by) { of.set_own_updater(std::move(by)); }

kv_store::kv_store(const kv_ticket& ticket, std::size_t rank)
    : core_(std::make_shared<detail::kv_core>(ticket, rank)) {}
kv_store::kv_store(kv_kind kind) : core_(std::make_shared<detail::kv_core>(kind)) {}
kv_store::~kv_store() = default;

std::size_t kv_store::rank() const noexcept { return core_->rank(); }
std::size_t kv_store::size() const noexcept { return core_->size(); }
kv_kind kv_store::kind() const noexcept { return core_->kind(); }
std::vector<std::size_t> kv_store::living() const { return core_->living(); }
const store& kv_store::values() const noexcept { return core_->values(); }

void kv_store::init(const store_key& key, const tensor& value) const { core_->init(key, value); }

void kv_store::push(const store_key& key, const tensor& value) const {
  core_->push(std::span(&key, 1), std::span(&value, 1));
}

void kv_store::push(const store_key& key, const std::vector<tensor>& values) const {
  if (values.empty()) throw error(errc::invalid_argument, "a push of no values");
  if (values.size() == 1) return push(key, values.front());
  const auto sum = values.front().clone();
  for (const auto& each : std::span(values).subspan(1)) accumulate(sum, each);
  push(key, sum);
}

void kv_store::push(const std::vector<store_key>& keys, const std::vector<tensor>& values) const {
  core_->push(keys, values);
}

tensor kv_store::pull(const store_key& key) const { return core_->values().pull<tensor>(key).value; }

void kv_store::pull(const store_key& key, const tensor& to) const { to.copy_from(pull(key)); }

tensor kv_store::push_pull(const store_key& key, const tensor& value) const {
  push(key, value);
  return pull(key);
}

tensor kv_store::broadcast(const store_key& key, const tensor& value) const {
  init(key, value);
  return pull(key);
}

void kv_store::set_optimizer(const update_rule& rule) const { core_->set_rule(rule); }

void kv_store::barrier(std::chrono::nanoseconds timeout) const { core_->barrier(timeout); }

void kv_store::run() const {
  if (core_->group()) core_->group()->run();
}

}  // namespace muster
